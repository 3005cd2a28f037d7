// A tool call in one line: what it did or does, with what, for how long, and how it ended. More on demand.
import {
  Check,
  ChevronRight,
  CircleAlert,
  CircleDashed,
  CircleSlash,
  Clock,
  LoaderCircle,
  RotateCcw,
  X,
} from "lucide-react";
import { memo, useState } from "react";
import type { TaskSnapshot } from "../../api/types";
import { type CallBlock, hasEnded } from "../../log/view";
import { useStore } from "../../store";
import { Made } from "../../tasks/artifacts";
import { Elapsed } from "../../ui/time";
import { SettleCall } from "../settle";
import { icon as stateIcon, TaskCard } from "../task-card";
import { digest, Value } from "../value";
import { Shown } from "./file";

type Props = { session_id: string; turn_id: string; block: CallBlock };

export const CallLine = memo(function CallLine({ session_id, block }: Props) {
  const [isOpen, setOpen] = useState(false);
  const task = useStore((state) => taskOf(state.views[session_id]?.tasks, block));
  const isUnknown = block.is_unknown && !block.settled;
  const { icon, said } = task ? ofTask(task) : look(block);
  const narration = task?.narration || block.narration;
  return (
    <div
      className={`space-y-2 ${task ? "task" : ""}`}
      data-block="call"
      data-call={block.call_id}
      data-tool={block.tool}
      data-outcome={block.outcome ?? block.state}
    >
      <div className="overflow-hidden rounded-xl border border-line bg-panel">
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="flex w-full items-center gap-2.5 px-3 py-2 text-start text-sm hover:bg-soft"
        >
          <span className="shrink-0 [&>svg]:size-4">{icon}</span>
          {narration ? (
            <span className="truncate">{narration}</span>
          ) : (
            <>
              <span className="shrink-0 font-mono text-[13px]">{block.tool}</span>
              <span className="min-w-0 truncate text-muted">{digest(block.args)}</span>
            </>
          )}
          <span className="ms-auto flex shrink-0 items-center gap-2 text-xs text-muted">
            {said && <span className={task ? "max-sm:hidden" : ""}>{said}</span>}
            {!task && <Elapsed from={block.started_at} to={block.ended_at} />}
            <ChevronRight className={`size-4 transition-transform ${isOpen ? "rotate-90" : ""}`} />
          </span>
        </button>
        {isOpen && (
          <div className="space-y-3 border-t border-line p-3">
            {narration && <div className="font-mono text-[13px]">{block.tool}</div>}
            <Value label="Input" value={block.args} />
            <Value label="Output" value={block.result} />
          </div>
        )}
        {task && <TaskCard task={task} tool={block.tool} />}
      </div>
      {!task && <Made artifacts={block.artifacts} />}
      {block.files.map((each, index) => (
        <Shown key={each.id ?? index} file={each} />
      ))}
      {isUnknown && !task && <SettleCall session_id={session_id} block={block} />}
      {block.settled && (
        <p className="text-xs text-muted">
          {block.settled.by ?? "Somebody"} said: {SETTLED[block.settled.verdict]}. {block.settled.note}
        </p>
      )}
    </div>
  );
});

const SETTLED = { worked: "it worked", failed: "it did not", try_again: "try it again" };

function taskOf(tasks: Record<string, TaskSnapshot> | undefined, block: CallBlock) {
  if (tasks === undefined) return undefined;
  if (block.task_id) return tasks[block.task_id];
  return Object.values(tasks).find((each) => each.call_id === block.call_id);
}

/** Its card says where it stands: of what has ended, the line does not say that it goes on. */
function ofTask(task: TaskSnapshot) {
  const goesOn = task.state === "queued" || task.state === "running";
  const mark = hasEnded(task) ? stateIcon(task) : <Clock className={goesOn ? "text-accent" : "text-warn"} />;
  return { icon: mark, said: goesOn ? "goes on in the background" : "" };
}

function look(block: CallBlock) {
  if (block.state !== "ended") {
    if (block.state === "asked") return { icon: <CircleDashed className="text-muted" />, said: "" };
    if (block.state === "waiting") return { icon: <Clock className="text-warn" />, said: block.reason ?? "waits" };
    return { icon: <LoaderCircle className="animate-spin text-accent" />, said: progressOf(block) };
  }
  switch (block.outcome) {
    case "success":
      return { icon: <Check className="text-good" />, said: "" };
    case "parked":
      return { icon: <Clock className="text-accent" />, said: "goes on in the background" };
    case "retried":
      return { icon: <RotateCcw className="text-warn" />, said: "refused; the model may try again" };
    case "interrupted":
      return block.is_unknown
        ? { icon: <CircleAlert className="text-warn" />, said: "interrupted: it may or may not have worked" }
        : { icon: <CircleSlash className="text-muted" />, said: "interrupted" };
    case "denied":
      return { icon: <CircleSlash className="text-bad" />, said: "not allowed" };
    default:
      return { icon: <X className="text-bad" />, said: block.outcome ?? "" };
  }
}

function progressOf(block: CallBlock): string {
  const { current, total, unit } = (block.progress ?? {}) as { current?: number; total?: number; unit?: string };
  if (current === undefined) return "";
  return total ? `${current} of ${total}${unit ? ` ${unit}` : ""}` : `${current}${unit ? ` ${unit}` : ""}`;
}
