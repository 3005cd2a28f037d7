// After some seconds of silence: what a session waits for, in words.
import type { View } from "../log/view";
import { hasEnded } from "../log/view";

export const SILENCE = 10_000;

/** What somebody who waits should know; null if nothing is awaited. `isPaused`: as far as one may know. */
export function waitsFor(view: View, isPaused = false): string | null {
  const turn = view.turns.at(-1);
  const { session } = view;
  if (turn === undefined || (turn.state !== "running" && turn.state !== "queued")) return null;
  if (turn.state === "queued") {
    if (session.no_worker_for) return `No worker runs the agent ${session.no_worker_for}: start one that does.`;
    if (turn.until) return `The limit of today is reached: it begins ${new Date(turn.until).toLocaleString()}.`;
    if (turn.place) return `Waits for a free place: number ${turn.place}.`;
    if (isPaused) return "New work is paused on this server: it begins when that ends.";
    return "Waits for a worker to begin. New work may be paused.";
  }
  for (const block of turn.blocks) {
    if (block.type !== "call" || block.state === "ended") continue;
    const task = Object.values(view.tasks).find((each) => each.call_id === block.call_id && !hasEnded(each));
    if (task?.state === "awaiting_input") return "Waits for you: see above.";
    if (block.state === "waiting") return `Waits for ${block.tool}: ${block.reason ?? "it goes on in this turn"}.`;
    if (block.state === "running") return `Waits for the tool ${block.tool}.`;
    return "The model is still writing what to call.";
  }
  const last = turn.blocks.at(-1);
  if (last && "is_open" in last && last.is_open) return "The model has paused in its answer.";
  return "Waits for the model's answer.";
}
