// Lists that the server keeps: asked for when shown, and again when the feed tells that they have changed.
import { QueryClient, useQuery } from "@tanstack/react-query";
import { api, type Page } from "./api/client";
import { Problem } from "./api/problems";
import type { Agent, LogEvent, Session, Task } from "./api/types";
import { listen, onAnew } from "./store";

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      retry: (count, error) => count < 3 && !(error instanceof Problem && error.status < 500),
      refetchOnWindowFocus: false,
    },
  },
});

export function useAgents() {
  return useQuery({ queryKey: ["agents"], queryFn: () => api.get<Page<Agent>>("agents") });
}

export function useSessions(search: string, archived: boolean) {
  return useQuery({
    queryKey: ["sessions", search, archived],
    queryFn: () => api.get<Page<Session>>("sessions", { limit: 100, search: search || undefined, archived }),
    placeholderData: (before) => before,
  });
}

/** Tasks of all sessions that wait for a person. */
export function useRequests() {
  return useQuery({ queryKey: ["requests"], queryFn: () => api.get<Page<Task>>("requests", { limit: 100 }) });
}

/** Which lists an event changes, by the first word of its type. */
const CHANGES: Record<string, readonly string[]> = {
  session: ["sessions"],
  turn: ["sessions"],
  input: ["sessions"],
  task: ["tasks", "requests"],
  request: ["requests", "tasks"],
};
const stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

function changed(events: readonly LogEvent[]): void {
  for (const { type } of events) for (const name of CHANGES[type.split(".")[0] ?? ""] ?? []) stale.add(name);
  if (stale.size === 0 || timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    for (const name of stale) void client.invalidateQueries({ queryKey: [name] });
    stale.clear();
  }, 400);
}

export function keepListsTrue(): () => void {
  const ends = [listen(changed), onAnew(() => void client.invalidateQueries())];
  return () => {
    for (const end of ends) end();
  };
}
