// How a task is told of in lists: its picture, its name, its state, its time.
import { Link } from "wouter";
import type { Task } from "../api/types";
import { SAID, sayState } from "../chat/states";
import { icon } from "../chat/task-card";
import { digest } from "../chat/value";
import { Bar } from "../ui/progress";
import { Ago, Elapsed, span } from "../ui/time";
import { unknown } from "./live";

export function TaskIcon({ task }: { task: Task }) {
  return <span className="mt-0.5 shrink-0 [&>svg]:size-4">{icon(task)}</span>;
}

export function isOpen(task: Task): boolean {
  return task.state === "queued" || task.state === "running" || task.state === "awaiting_input";
}

/** Its state and how long that took or takes. */
export function Said({ task }: { task: Task }) {
  const left = unknown(task);
  if (left) return <span className="text-warn">{left}</span>;
  return (
    <>
      <span className={task.state === "awaiting_input" ? "text-warn" : task.state === "failed" ? "text-bad" : ""}>
        {sayState(task as never, SAID)}
      </span>
      {task.place ? `, number ${task.place}` : ""}
      {task.ran_seconds != null && !isOpen(task) && <> after {span(task.ran_seconds * 1_000)}</>}
      {isOpen(task) && task.started_at && (
        <>
          {" · "}
          <Elapsed from={task.started_at} />
        </>
      )}
    </>
  );
}

/** Whichever says the most: its narration, its title, or its tool and what it was given. */
export function nameOf(task: Task): string {
  return task.narration || task.title || task.tool || task.id;
}

/** Why it failed, until somebody has said what became of it. */
export function failure(task: Task): string | null {
  if (task.state !== "failed" || task.settled) return null;
  return (task.error as { message?: string } | null | undefined)?.message ?? null;
}

export function TaskRow({ task, line }: { task: Task; line?: string | null }) {
  const said = isOpen(task) ? (line ?? task.last_line) : null;
  return (
    <li className="relative px-4 py-3 hover:bg-soft/60" data-task={task.id} data-state={task.state}>
      <div className="flex items-start gap-3">
        <TaskIcon task={task} />
        <div className="min-w-0 flex-1 space-y-1">
          <div className="flex flex-wrap items-baseline gap-x-3">
            <Link
              to={`/tasks/${task.id}`}
              className="min-w-0 truncate text-sm font-medium after:absolute after:inset-0 hover:underline"
            >
              {nameOf(task)}
            </Link>
            <span className="ms-auto shrink-0 text-xs text-muted">
              <Ago at={task.ended_at ?? task.created_at} />
            </span>
          </div>
          <p className="truncate text-xs text-muted">
            <Said task={task} />
            {task.title !== task.tool && task.tool && <span className="font-mono"> · {task.tool}</span>}
            {digest(task.args) && <span> · {digest(task.args).slice(0, 140)}</span>}
          </p>
          {task.state === "running" && task.progress && (
            <Bar progress={task.progress} label={`Progress of ${nameOf(task)}`} />
          )}
          {said && <p className="truncate font-mono text-xs text-muted">{said}</p>}
          {failure(task) && <p className="line-clamp-2 text-xs text-bad">{failure(task)}</p>}
          {task.no_worker_for && isOpen(task) && (
            <p className="text-xs text-warn">No worker runs the agent {task.no_worker_for}: start one that does.</p>
          )}
        </div>
      </div>
    </li>
  );
}
