// Tasks of all sessions. What is asked for stands in the address, so that it can be kept and sent.
import { ListChecks } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { words } from "../api/problems";
import { Button } from "../ui/button";
import { Nothing, Refused } from "../ui/empty";
import { Frame, Rows, Waiting } from "../ui/frame";
import { TaskRow } from "./bits";
import { ranked } from "./live";
import { type Filter, useTasks } from "./queries";

const STATES = [
  ["", "All"],
  ["open", "Open"],
  ["running", "Running"],
  ["awaiting_input", "Needs you"],
  ["succeeded", "Done"],
  ["failed", "Failed"],
  ["canceled", "Cancelled"],
] as const;
const PAGE = 50;

export default function TasksPage() {
  const [params, setParams] = useSearchParams();
  const [limit, setLimit] = useState(PAGE);
  const at = (name: string) => params.get(name) || undefined;
  const filter: Filter = { state: at("state"), tool: at("tool"), session: at("session"), order: at("order") };
  const { data, error, isPending } = useTasks(filter, limit);
  const set = (name: string, value: string) =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  const hasFilter = Object.values(filter).some(Boolean);
  const isOpenOnly = filter.state === "open";
  const items = isOpenOnly ? ranked(data?.items ?? []) : (data?.items ?? []);
  return (
    <Frame isWide title="Tasks" about="Whatever takes long, over all your chats.">
      <div className="flex flex-wrap items-center gap-2">
        <div className="flex flex-wrap gap-1 rounded-xl bg-soft p-1" role="group" aria-label="State">
          {STATES.map(([value, label]) => (
            <button
              key={value}
              type="button"
              aria-pressed={(filter.state ?? "") === value}
              onClick={() => set("state", value)}
              className="rounded-lg px-2.5 py-1 text-sm text-muted hover:text-ink aria-pressed:bg-panel aria-pressed:font-medium aria-pressed:text-ink aria-pressed:shadow-sm"
            >
              {label}
            </button>
          ))}
        </div>
        <input
          type="search"
          aria-label="Tool"
          placeholder="Tool"
          defaultValue={filter.tool ?? ""}
          onBlur={(event) => set("tool", event.target.value.trim())}
          onKeyDown={(event) => event.key === "Enter" && set("tool", event.currentTarget.value.trim())}
          className="w-36 rounded-lg border border-line bg-panel px-3 py-1.5 text-sm placeholder:text-muted"
        />
        <Button kind="quiet" onClick={() => set("order", filter.order === "oldest" ? "" : "oldest")}>
          {filter.order === "oldest" ? "Oldest first" : "Newest first"}
        </Button>
        {hasFilter && (
          <Button kind="quiet" onClick={() => setParams(new URLSearchParams())}>
            Show all
          </Button>
        )}
      </div>
      {error && <Refused>{words(error)}</Refused>}
      {isPending && <Waiting />}
      {items.length > 0 && (
        <Rows label="Tasks">
          {items.map((each) => (
            <TaskRow key={each.id} task={each} />
          ))}
        </Rows>
      )}
      {data?.next && (
        <div className="text-center">
          <Button onClick={() => setLimit(Math.min(500, limit + PAGE))} disabled={limit >= 500}>
            {limit >= 500 ? "Narrow it down to see more" : "More"}
          </Button>
        </div>
      )}
      {data && items.length === 0 && (
        <Nothing title={hasFilter ? "No task is like that" : "No tasks yet"} icon={<ListChecks className="size-6" />}>
          {hasFilter
            ? "Choose another state, or show all."
            : "When a tool in one of your chats takes longer than its budget, it goes on here by itself."}
        </Nothing>
      )}
    </Frame>
  );
}
