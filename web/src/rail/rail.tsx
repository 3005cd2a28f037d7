// Beside the chat: every background task of the session and of those that work for it, live.
import { ListChecks, PanelRightClose } from "lucide-react";
import { memo, useEffect, useMemo } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import type { Task } from "../api/types";
import { Cancel } from "../chat/task-card";
import { digest } from "../chat/value";
import { follow, useStore } from "../store";
import { isOpen, nameOf, Said, TaskIcon } from "../tasks/bits";
import { lastLine } from "../tasks/lines";
import { ranked } from "../tasks/live";
import { useTree } from "../tasks/queries";
import { Ask } from "../ui/ask";
import { IconButton } from "../ui/button";
import { Bar } from "../ui/progress";

const MOST_FOLLOWED = 6;
const MOST_ENDED = 30;

export default function Rail({ session_id, close }: { session_id: string; close: () => void }) {
  const { data, isPending } = useTree(session_id, true);
  const tasks = useMemo(() => ranked(data?.items ?? []), [data]);
  const open = tasks.filter(isOpen);
  const ended = tasks.filter((each) => !isOpen(each));
  useFollowed(open);
  return (
    <div className="flex h-full min-h-0 flex-col" data-rail>
      <div className="flex min-h-14 items-center gap-2 border-b border-line ps-4 pe-2">
        <ListChecks className="size-4 text-muted" />
        <h2 className="min-w-0 flex-1 truncate text-sm font-semibold">
          Background work
          {open.length > 0 && <span className="ms-2 font-normal text-muted">{open.length}</span>}
        </h2>
        {open.length > 0 && <StopAll session_id={session_id} count={open.length} />}
        <IconButton label="Close the list of background work" onClick={close}>
          <PanelRightClose className="size-4" />
        </IconButton>
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto p-3" tabIndex={0} role="group" aria-label="Background work">
        {!isPending && tasks.length === 0 && (
          <p className="p-3 text-sm text-muted">
            Nothing yet. Whatever takes long goes on here, while the chat stays free for you.
          </p>
        )}
        <ul className="space-y-2">
          {open.map((each) => (
            <Item key={each.id} task={each} session_id={session_id} />
          ))}
        </ul>
        {ended.length > 0 && (
          <>
            <h3 className="px-1 pt-4 pb-1.5 text-xs font-medium text-muted">Ended</h3>
            <ul className="space-y-1">
              {ended.slice(0, MOST_ENDED).map((each) => (
                <Item key={each.id} task={each} session_id={session_id} />
              ))}
            </ul>
          </>
        )}
      </div>
      <Link
        to={`/tasks?session=${session_id}`}
        className="border-t border-line px-4 py-2.5 text-sm text-muted hover:text-ink"
      >
        All tasks of this chat
      </Link>
    </div>
  );
}

/** The turn that runs, and all that was set going in it and below it. */
function StopAll({ session_id, count }: { session_id: string; count: number }) {
  const tasks = count === 1 ? "One background task is" : `${count} background tasks are`;
  return (
    <Ask
      label="Stop all"
      title="Stop this chat and all that works for it?"
      about={`An answer that is being given ends. ${tasks} cancelled, those of sub-agents, too. What was said and done is kept, and nothing starts until you write again.`}
      yes="Stop all"
      run={() => api.post(`sessions/${session_id}/stop`, { cascade: true })}
    />
  );
}

/** The output of those that run comes with the stream. */
function useFollowed(open: readonly Task[]): void {
  const ids = open
    .filter((each) => each.state === "running")
    .slice(0, MOST_FOLLOWED)
    .map((each) => each.id)
    .sort()
    .join(" ");
  useEffect(() => {
    const ends = ids
      .split(" ")
      .filter(Boolean)
      .map((id) => follow(id, "end"));
    return () => {
      for (const end of ends) end();
    };
  }, [ids]);
}

const Item = memo(function Item({ task, session_id }: { task: Task; session_id: string }) {
  const live = useStore((state) => lastLine(state.outputs[task.id]?.text));
  const line = isOpen(task) ? live || task.last_line : null;
  const needs = task.state === "awaiting_input";
  const sub = task.links?.child_session;
  return (
    <li
      data-task={task.id}
      data-state={task.state}
      className={`task space-y-1.5 rounded-xl border px-3 py-2 ${needs ? "border-warn/40 bg-warn-soft" : isOpen(task) ? "border-line bg-panel" : "border-transparent"}`}
    >
      <div className="flex items-start gap-2.5">
        <TaskIcon task={task} />
        <div className="min-w-0 flex-1">
          <Link to={`/tasks/${task.id}`} className="line-clamp-2 text-sm [overflow-wrap:anywhere] hover:underline">
            {nameOf(task)}
          </Link>
          <p className="truncate text-xs text-muted">
            <Said task={task} />
            {task.session_id !== session_id && " · sub-agent"}
          </p>
        </div>
        {isOpen(task) && <Cancel task={task as never} />}
      </div>
      {isOpen(task) && digest(task.args) && <p className="truncate text-xs text-muted">{digest(task.args)}</p>}
      {task.state === "running" && <Bar progress={task.progress} label={`Progress of ${nameOf(task)}, ${task.id}`} />}
      {line && (
        <p className="truncate font-mono text-xs text-muted" data-last-line>
          {line}
        </p>
      )}
      {(needs || sub) && (
        <div className="flex gap-4 text-xs">
          {needs && (
            <Link to={`/tasks/${task.id}`} className="font-medium text-warn underline">
              Answer it
            </Link>
          )}
          {sub && (
            <Link to={`/sessions/${sub}`} className="text-accent underline">
              Look over its shoulder
            </Link>
          )}
        </div>
      )}
    </li>
  );
});
