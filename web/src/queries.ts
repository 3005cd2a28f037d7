// Lists that the server keeps: asked for when shown, and again when the feed tells that they have changed.
import { QueryClient, useQuery } from "@tanstack/react-query";
import { api, type Page } from "./api/client";
import { Problem } from "./api/problems";
import type { Agent, LogEvent, Me, Session, Task } from "./api/types";
import { listen, onAnew } from "./store";
import { isNew, merged, patched, told } from "./tasks/live";

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

export function useSessions(search: string, archived: boolean, limit = 100) {
  return useQuery({
    queryKey: ["sessions", search, archived, limit],
    queryFn: () => api.get<Page<Session>>("sessions", { limit, search: search || undefined, archived }),
    placeholderData: (before) => before,
  });
}

/** Tasks of all sessions that wait for a person. */
export function useRequests() {
  return useQuery({ queryKey: ["requests"], queryFn: () => api.get<Page<Task>>("requests", { limit: 100 }) });
}

export function useMe() {
  return useQuery({ queryKey: ["me"], queryFn: () => api.get<Me>("me"), staleTime: Number.POSITIVE_INFINITY });
}

/** Which lists an event changes, by the first word of its type. */
const CHANGES: Record<string, readonly string[]> = {
  session: ["sessions"],
  turn: ["sessions"],
  input: ["sessions"],
  request: ["requests", "tasks"],
  schedule: ["schedules"],
};
const stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Progress is put into what is shown; only what begins, ends or waits has the lists asked for again. */
function changedTasks(events: readonly LogEvent[]): void {
  const news = told(events);
  if (news.size === 0) return;
  const known = new Map<string, string>();
  client.setQueriesData<Page<Task> | Task>({ queryKey: ["tasks"] }, (shown) => {
    if (shown === undefined) return undefined;
    if (!("items" in shown)) {
      known.set(shown.id, shown.state);
      return news.has(shown.id) ? merged(shown, news.get(shown.id)) : shown;
    }
    for (const each of shown.items) known.set(each.id, each.state);
    const items = patched(shown.items, news);
    return items === shown.items ? shown : { ...shown, items: [...items] };
  });
  if (isNew(events, known)) for (const name of ["tasks", "requests"]) stale.add(name);
}

function changed(events: readonly LogEvent[]): void {
  changedTasks(events);
  if (events.some((each) => each.type === "session.deleted")) for (const name of ["tasks", "requests"]) stale.add(name);
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
