// What those who work for this session ask a person, however far below it they stand: answered here, too.
import { useQuery } from "@tanstack/react-query";
import { Bot } from "lucide-react";
import { Link } from "wouter";
import { api, type Page } from "../api/client";
import type { Task } from "../api/types";
import { nameOf } from "../tasks/bits";
import { RequestCard } from "./request";

/** `hasTasks`: a session without any has nobody who works for it. */
export function Below({ id, hasTasks }: { id: string; hasTasks: boolean }) {
  const { data } = useQuery({
    queryKey: ["requests", "of", id],
    queryFn: () => api.get<Page<Task>>(`sessions/${id}/requests`, { limit: 50 }),
    enabled: hasTasks,
  });
  const items = (data?.items ?? []).filter((each) => each.session_id !== id);
  if (items.length === 0) return null;
  return (
    <ul className="space-y-3" aria-label="What sub-agents ask">
      {items.map((each) => (
        <li key={each.id} className="space-y-2 rounded-xl border border-line bg-panel p-3 text-sm" data-below={each.id}>
          <p className="flex flex-wrap items-center gap-2">
            <Bot className="size-4 text-muted" />
            <span className="text-muted">A sub-agent asks, for</span>
            <Link to={`/tasks/${each.id}`} className="font-medium hover:underline">
              {nameOf(each)}
            </Link>
            <Link to={`/sessions/${each.session_id}`} className="ms-auto text-xs text-accent underline">
              Look over its shoulder
            </Link>
          </p>
          <RequestCard task={each} />
        </li>
      ))}
    </ul>
  );
}
