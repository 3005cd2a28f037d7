// States of tasks in words, the same everywhere.
import type { TaskSnapshot } from "../api/types";

export const SAID: Record<string, string> = {
  queued: "waits to begin",
  running: "runs",
  awaiting_input: "waits for you",
  succeeded: "is done",
  failed: "failed",
  canceled: "was cancelled",
};

const VERDICTS: Record<string, string> = { worked: "worked", failed: "did not work", try_again: "is tried again" };

export function sayState(task: Pick<TaskSnapshot, "state" | "settled">, words: Record<string, string>): string {
  const settled = task.settled as { verdict?: string } | null | undefined;
  if (settled?.verdict) return VERDICTS[settled.verdict] ?? settled.verdict;
  return words[task.state] ?? task.state;
}
