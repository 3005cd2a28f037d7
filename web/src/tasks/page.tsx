// One task: what it is, how far it is, what it asks for, what it puts out, and how it ended.

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link, useParams } from "wouter";
import { api } from "../api/client";
import { Problem, words } from "../api/problems";
import type { Session, Task } from "../api/types";
import { Conversation } from "../chat/conversation";
import { RequestCard } from "../chat/request";
import { SettleTask } from "../chat/settle";
import { Cancel } from "../chat/task-card";
import { Value } from "../chat/value";
import { titleOf } from "../sessions/title";
import { open, useStore } from "../store";
import { Nothing } from "../ui/empty";
import { Badge, Card, Facts, Frame, Waiting } from "../ui/frame";
import { Bar } from "../ui/progress";
import { Artifacts } from "./artifacts";
import { isOpen, nameOf, Said, TaskIcon } from "./bits";
import { unknown } from "./live";
import { Output } from "./output";
import { useTask } from "./queries";
import { Timeline } from "./timeline";

export default function TaskPage() {
  const { id = "" } = useParams<{ id: string }>();
  const { data, error } = useTask(id);
  if (error)
    return (
      <Nothing
        title={error instanceof Problem && error.status === 404 ? "There is no such task" : "It cannot be shown"}
      >
        <p>{words(error)}</p>
        <Link to="/tasks" className="text-accent underline">
          All tasks
        </Link>
      </Nothing>
    );
  if (!data)
    return (
      <Frame title="Task">
        <Waiting />
      </Frame>
    );
  const sub = data.links?.child_session;
  return sub ? (
    <div className="flex min-h-0 flex-1">
      <div className="flex min-h-0 min-w-0 flex-1">
        <Shown key={id} task={data} />
      </div>
      <aside className="w-[26rem] shrink-0 border-s border-line max-xl:hidden" aria-label="The sub-agent, live">
        <Beside id={sub} />
      </aside>
    </div>
  ) : (
    <Shown key={id} task={data} />
  );
}

/** The session that works for it, as it goes on. */
function Beside({ id }: { id: string }) {
  const isThere = useStore((state) => id in state.views);
  useEffect(() => void open(id), [id]);
  return isThere ? <Conversation id={id} /> : null;
}

function Shown({ task }: { task: Task }) {
  const error = task.error as { kind?: string; message?: string } | null;
  const late = task.late_outcome as Record<string, unknown> | null;
  return (
    <Frame
      isWide
      title={
        <span className="flex items-start gap-3" data-task={task.id} data-state={task.state}>
          <span className="pt-2 [&_svg]:!size-5">
            <TaskIcon task={task} />
          </span>
          <span>{nameOf(task)}</span>
        </span>
      }
      about={
        <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span>
            <Said task={task} />
          </span>
          {task.attempt > 1 && <Badge>attempt {task.attempt}</Badge>}
          {task.is_cancel_requested && isOpen(task) && <Badge tone="warn">cancel asked</Badge>}
          {task.links?.retry_of && <Near to={task.links.retry_of}>tries an earlier one again</Near>}
          {task.links?.retried_as && <Near to={task.links.retried_as}>is tried again</Near>}
        </span>
      }
      actions={isOpen(task) ? <Cancel task={task as never} /> : null}
    >
      {task.no_worker_for && isOpen(task) && (
        <p className="rounded-xl bg-warn-soft px-4 py-2.5 text-sm text-warn">
          No worker runs the agent {task.no_worker_for}: start one that does.
        </p>
      )}
      {task.state === "running" && <Bar progress={task.progress} label={`Progress of ${nameOf(task)}`} />}
      {task.detail && <p className="text-sm text-muted">{task.detail}</p>}
      {task.state === "awaiting_input" && <RequestCard task={task} />}
      {error && !task.settled && (
        <p className="rounded-xl bg-bad-soft px-4 py-2.5 text-sm text-bad [overflow-wrap:anywhere]">
          {error.message ?? error.kind}
        </p>
      )}
      {unknown(task) && <SettleTask task={task} />}
      {late && <Value label="What it came to after its end had been told" value={late} />}
      <Output id={task.id} isOver={!isOpen(task)} />
      <Artifacts task={task} />
      <div className="grid gap-6 lg:grid-cols-2">
        <Card title="What it was given and what came of it">
          <div className="space-y-3">
            <Value label="Input" value={task.args} />
            <Value label="Result" value={task.result} />
            {task.result === null && !isOpen(task) && <p className="text-sm text-muted">It has no result.</p>}
          </div>
        </Card>
        <div className="space-y-6">
          <Card title="What happened when">
            <Timeline task={task} />
          </Card>
          <Card title="About it">
            <About task={task} />
          </Card>
        </div>
      </div>
    </Frame>
  );
}

function Near({ to, children }: { to: string; children: string }) {
  return (
    <Link to={`/tasks/${to}`} className="text-accent underline">
      {children}
    </Link>
  );
}

function About({ task }: { task: Task }) {
  const { data: session } = useQuery({
    queryKey: ["sessions", "one", task.session_id],
    queryFn: () => api.get<Session>(`sessions/${task.session_id}`),
  });
  const sub = task.links?.child_session;
  const { usage } = task;
  return (
    <Facts
      rows={[
        [
          "Chat",
          <Link key="chat" to={`/sessions/${task.session_id}`} className="text-accent underline">
            {session ? titleOf(session) : "open it"}
          </Link>,
        ],
        [
          "Sub-agent",
          sub && (
            <Link key="sub" to={`/sessions/${sub}`} className="text-accent underline">
              open its chat
            </Link>
          ),
        ],
        ["Tool", task.tool],
        ["Agent", task.agent],
        [
          "Set going",
          task.links?.schedule ? "by a schedule" : task.origin === "spawn" ? "on purpose" : "by a call that took long",
        ],
        ["Group", task.group],
        ["May run again", task.may_run_again ? "yes" : "no: somebody must say what became of it"],
        ["When it ends", task.wake === "silent" ? "nobody is told" : "the chat is woken"],
        ["Worker", task.worker_id],
        ["Deadline", task.deadline_at && new Date(task.deadline_at).toLocaleString()],
        [
          "Tokens",
          usage && `${(usage.input_tokens + usage.output_tokens).toLocaleString()} in ${usage.requests} requests`,
        ],
        [
          "Id",
          <span key="id" className="font-mono text-xs">
            {task.id}
          </span>,
        ],
      ]}
    />
  );
}
