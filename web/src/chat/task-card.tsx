// The task that a call has become: live while it runs, with its end in the same place.
import { Check, CircleAlert, CircleSlash, Clock, Hourglass, LoaderCircle, X } from "lucide-react";
import { memo, useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { Task, TaskSnapshot } from "../api/types";
import { hasEnded } from "../log/view";
import { Made } from "../tasks/artifacts";
import { unknown } from "../tasks/live";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";
import { Bar } from "../ui/progress";
import { Elapsed } from "../ui/time";
import { RequestCard } from "./request";
import { SettleTask } from "./settle";
import { SAID, sayState } from "./states";

type Props = { task: TaskSnapshot; tool: string };

export const TaskCard = memo(function TaskCard({ task, tool }: Props) {
  const isOver = hasEnded(task);
  const error = task.error as { kind?: string; message?: string } | null | undefined;
  const ran = task.ran_seconds;
  return (
    <section
      className="space-y-2.5 border-t border-line px-3 py-2.5 text-sm"
      data-task={task.id}
      data-state={task.state}
      aria-label={`Background task ${task.title}`}
    >
      <div className="flex items-center gap-2.5">
        <span className="shrink-0 [&>svg]:size-4">{icon(task)}</span>
        <span className="min-w-0 flex-1 truncate">
          {task.title !== tool && <span className="font-medium">{task.title} </span>}
          <span className="text-muted" data-said>
            {sayState(task, SAID)}
            {task.place ? `, number ${task.place}` : ""}
            {isOver && typeof ran === "number" && ` after ${ran < 10 ? ran.toFixed(1) : Math.round(ran)} s`}
            {!isOver && task.started_at && (
              <>
                {" · "}
                <Elapsed from={task.started_at} />
              </>
            )}
          </span>
        </span>
        {!isOver && <Cancel task={task} />}
      </div>
      {!isOver && task.state === "running" && <Bar progress={task.progress} label={`Progress of ${task.title}`} />}
      {!isOver && task.detail && <p className="text-xs text-muted">{task.detail}</p>}
      {task.state === "failed" && error?.message && !task.settled && <p className="text-bad">{error.message}</p>}
      {task.state === "awaiting_input" && <RequestCard task={task} />}
      <Made artifacts={task.artifacts ?? []} />
      {isOver && unknown(task) && <SettleTask task={task} />}
    </section>
  );
});

export function Cancel({ task }: { task: Pick<TaskSnapshot, "id" | "is_cancel_requested"> }) {
  const [isAsked, setAsked] = useState(false);
  const [said, setSaid] = useState<string | null>(null);
  const cancel = async () => {
    setAsked(true);
    try {
      const after = await api.post<Task>(`tasks/${task.id}/cancel`, { wait: 10 });
      if (after.state === "running") setSaid("It has not stopped yet.");
    } catch (error) {
      setSaid(words(error));
    }
    setAsked(false);
  };
  return (
    <>
      {said && <Refused>{said}</Refused>}
      <Button kind="quiet" className="!px-2 !py-0.5 !text-xs" disabled={isAsked} onClick={() => void cancel()}>
        {isAsked || task.is_cancel_requested ? "Cancelling…" : "Cancel"}
      </Button>
    </>
  );
}

export function icon(task: Pick<TaskSnapshot, "state" | "settled">) {
  const settled = task.settled as { verdict?: string } | null | undefined;
  if (settled?.verdict === "worked") return <Check className="text-good" />;
  switch (task.state) {
    case "queued":
      return <Hourglass className="text-muted" />;
    case "running":
      return <LoaderCircle className="animate-spin text-accent" />;
    case "awaiting_input":
      return <CircleAlert className="text-warn" />;
    case "succeeded":
      return <Check className="text-good" />;
    case "canceled":
      return <CircleSlash className="text-muted" />;
    case "failed":
      return <X className="text-bad" />;
    default:
      return <Clock className="text-muted" />;
  }
}
