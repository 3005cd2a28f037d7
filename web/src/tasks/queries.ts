import { useQuery } from "@tanstack/react-query";
import { api, type Page } from "../api/client";
import type { Session, Task } from "../api/types";

export type Filter = { state?: string; tool?: string; kind?: string; session?: string; order?: string };
const DEEPEST = 3;

export function useTasks(filter: Filter, limit: number) {
  return useQuery({
    queryKey: ["tasks", "list", filter, limit],
    queryFn: () => api.get<Page<Task>>("tasks", { ...filter, limit }),
    placeholderData: (before) => before,
  });
}

export function useTask(id: string) {
  return useQuery({ queryKey: ["tasks", "one", id], queryFn: () => api.get<Task>(`tasks/${encodeURIComponent(id)}`) });
}

/** Tasks of a session and of those that work for it. */
export function useTree(session_id: string, isOn: boolean) {
  return useQuery({
    queryKey: ["tasks", "tree", session_id],
    queryFn: async () => ({ items: await treeOf(session_id, 0), next: null }),
    enabled: isOn,
  });
}

async function treeOf(session_id: string, depth: number): Promise<Task[]> {
  const session = session_id;
  const own = await api.get<Page<Task>>("tasks", { session, limit: 60 });
  const hasSub = own.items.some((each) => each.links?.child_session);
  if (!hasSub || depth >= DEEPEST) return own.items;
  const subs = await api.get<Page<Session>>("sessions", { parent: session, limit: 20 });
  const below = await Promise.all(subs.items.map((each) => treeOf(each.id, depth + 1)));
  return [...own.items, ...below.flat()];
}
