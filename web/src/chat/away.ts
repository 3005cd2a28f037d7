// What has happened in a session since this browser last showed it.
import type { View } from "../log/view";
import { hasEnded, isOver } from "../log/view";

const name = (id: string) => `outlast.seen.${id}`;

export function lastSeen(id: string): string | null {
  return localStorage.getItem(name(id));
}

export function markSeen(id: string, at: string): void {
  localStorage.setItem(name(id), at);
}

export type Away = { first: string; words: string };

/** The first turn that came or ended meanwhile, and a summary; null if nothing has. */
export function whileAway(view: View, since: string | null): Away | null {
  if (since === null) return null;
  const news = view.turns.filter((each) => isOver(each) && (each.ended_at ?? "") > since);
  const [first] = news;
  if (first === undefined) return null;
  const count = (state: string) => news.filter((each) => each.state === state).length;
  const tasks = Object.values(view.tasks);
  const asks = tasks.filter((each) => !hasEnded(each) && each.state === "awaiting_input").length;
  const failed = count("failed");
  const told = news.flatMap((each) => each.blocks).filter((each) => each.type === "wake").length;
  const said = [
    plural(count("completed"), "answer"),
    failed > 0 ? plural(failed, "failure") : "",
    told > 0 ? plural(told, "end of background work", "ends of background work") : "",
    asks > 0 ? plural(asks, "question waits", "questions wait") : "",
  ].filter(Boolean);
  return { first: first.id, words: said.join(", ") };
}

function plural(count: number, one: string, many = `${one}s`): string {
  return count === 0 ? "" : `${count} ${count === 1 ? one : many}`;
}
