// Background tasks, folded over everything that tells of them.

import type { Message } from "./server";

export type Task = {
  id: string;
  title: string;
  state: "queued" | "running" | "awaiting_input" | "succeeded" | "failed" | "canceled";
  settled: { verdict: "worked" | "failed" | "try_again" } | null;
  detail: string | null;
  progress: { current: number; total: number | null; unit: string | null; label: string | null } | null;
};

export type Tasks = ReadonlyMap<string, Task>;

export const isOver = (task: Task) => ["succeeded", "failed", "canceled"].includes(task.state);

/** Later news replace earlier ones, but a task does not go back from its end: a replay may tell of its past. */
export function add(tasks: Tasks, task: Task): Tasks {
  const known = tasks.get(task.id);
  return known && stage(known) > stage(task) ? tasks : new Map(tasks).set(task.id, task);
}

/** It is open, over, or settled by a person who knows what became of it. */
const stage = (task: Task) => (task.settled ? 2 : isOver(task) ? 1 : 0);

/**
 * Each task as it is now. A `data-task` part says how the task was while that answer was streamed, and the part of an
 * older message never changes again: what became of it stands in a later message, or comes with the live events.
 */
export function tasksOf(messages: Message[], live: Tasks): Tasks {
  const told = messages.flatMap((message) => message.parts.flatMap((part) => (part.type === "data-task" ? [part.data] : [])));
  return [...told, ...live.values()].reduce(add, new Map<string, Task>());
}
