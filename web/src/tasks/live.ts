// What the feed tells of tasks, put into the lists that are shown: a bar moves without asking the server again.
import type { LogEvent, Task, TaskSnapshot } from "../api/types";

export type Live = Task;

/** The last that was told of each task. */
export function told(events: readonly LogEvent[]): Map<string, TaskSnapshot> {
  const found = new Map<string, TaskSnapshot>();
  for (const { type, data } of events)
    if (type === "task.created" || type === "task.changed" || type === "task.ended") {
      const { task } = data as { task?: TaskSnapshot };
      if (task) found.set(task.id, task);
    }
  return found;
}

/** Long values of a snapshot are cut: what the server answered in full stays. */
export function merged(task: Task, snapshot: TaskSnapshot | undefined): Task {
  if (snapshot === undefined) return task;
  const { args: _args, result_preview: _preview, ...rest } = snapshot;
  const known = Object.entries(rest).filter(([, value]) => value !== undefined && value !== null);
  return { ...task, ...(Object.fromEntries(known) as Partial<Task>) };
}

/** The list with the news; the same list if there are none. */
export function patched(items: readonly Task[], news: ReadonlyMap<string, TaskSnapshot>): readonly Task[] {
  if (!items.some((each) => news.has(each.id))) return items;
  return items.map((each) => merged(each, news.get(each.id)));
}

/** Whether a list must be asked for again: something began, ended, or stands in another state. */
export function isNew(events: readonly LogEvent[], known: ReadonlyMap<string, string>): boolean {
  for (const [id, task] of told(events)) if (known.get(id) !== task.state) return true;
  return false;
}

const RANK: Record<string, number> = { awaiting_input: 0, running: 1, queued: 2 };

/** Those that need somebody first, then what runs, then what waits, then the ends, the last first. */
export function ranked(tasks: readonly Task[]): Task[] {
  const rank = (task: Task) => (unknown(task) ? 0 : (RANK[task.state] ?? 3));
  const at = (task: Task) => Date.parse(task.ended_at ?? task.started_at ?? task.created_at);
  return [...tasks].sort((a, b) => rank(a) - rank(b) || at(b) - at(a));
}

/** Ends after which it is not known what a task has done, in words. */
const UNKNOWN: Record<string, string> = {
  interrupted: "was interrupted",
  abandoned: "ignored its cancel",
  crash_loop: "ended its process each time it ran",
};

type Ended = Pick<TaskSnapshot, "error" | "settled"> & { may_run_again?: boolean };

/** What is known of a task that somebody must look at, and that nobody has settled; null for all others. */
export function unknown(task: Ended): string | null {
  const what = UNKNOWN[(task.error as { kind?: string } | null | undefined)?.kind ?? ""];
  if (what === undefined || task.settled) return null;
  return task.may_run_again ? `${what}; it may be run again without harm` : `${what}: did it work?`;
}
