import { getToolName, isToolUIPart, type ToolUIPart } from "ai";
import type { Message } from "./server";
import { isOver, type Task, type Tasks } from "./tasks";

type Part = Message["parts"][number];

export function MessageView({ message, tasks }: { message: Message; tasks: Tasks }) {
  const dropped = new Set(message.parts.flatMap((part) => (part.type === "data-dropped" ? part.data.parts : [])));
  const { state, error } = message.metadata ?? {};
  return (
    <li className={message.role}>
      {message.parts.map((part, index) => (
        <PartView key={index} part={part} tasks={tasks} dropped={dropped} />
      ))}
      {state === "stopped" && <p className="note">Stopped.</p>}
      {state === "failed" && <p className="note">It failed: {error?.message}</p>}
    </li>
  );
}

function PartView({ part, tasks, dropped }: { part: Part; tasks: Tasks; dropped: Set<string> }) {
  if (isToolUIPart(part)) return <CallView call={part as ToolUIPart} tasks={tasks} />;
  switch (part.type) {
    case "text":
      return dropped.has(nameOf(part)) ? null : <p className="text">{part.text}</p>;
    case "reasoning":
      return dropped.has(nameOf(part)) ? null : <details><summary>Thoughts</summary>{part.text}</details>;
    case "data-message":
      return <p className="note">Heard: {part.data.text}</p>;
    case "data-wake":
      return <p className="note">Background work has ended:</p>;
    case "data-output":
      return <pre>{JSON.stringify(part.data.output, null, 2)}</pre>;
    case "data-file":
      return <p className="note">{part.data.name}</p>;
    default: // `data-task` is shown by the call it belongs to
      return null;
  }
}

/** A text that was broken off in the middle is named by `data-dropped`, because a client cannot take words back. */
const nameOf = (part: { providerMetadata?: Record<string, Record<string, unknown>> }) =>
  String(part.providerMetadata?.outlast?.part);

/** A call that outran its budget has a handle as its output: from then on its task tells how far it is. */
function CallView({ call, tasks }: { call: ToolUIPart; tasks: Tasks }) {
  const output = call.output as { type?: string; task_id?: string } | null | undefined;
  const task = output?.type === "background" ? tasks.get(output.task_id ?? "") : undefined;
  const state = task ? stateOf(task) : CALL_WORDS[call.state] ?? "running";
  return (
    <div className="call" data-state={state}>
      <b>{getToolName(call)}</b> <span className="state">{state}</span>
      {task && !isOver(task) && <TaskProgress task={task} />}
    </div>
  );
}

function TaskProgress({ task }: { task: Task }) {
  if (!task.progress) return null;
  const { current, total, unit, label } = task.progress;
  const words = [total === null ? current : `${current} of ${total}`, unit, label].filter((word) => word !== null);
  return (
    <>
      {total !== null && total > 0 && <progress value={Math.min(total, Math.max(0, current))} max={total} aria-label={task.title} />}
      <small>{words.join(" ")}</small>
    </>
  );
}

const stateOf = (task: Task) => (task.settled ? `settled: ${task.settled.verdict}` : WORDS[task.state]);

const WORDS: Record<Task["state"], string> = {
  queued: "waiting",
  running: "running",
  awaiting_input: "asks you",
  succeeded: "done",
  failed: "failed",
  canceled: "canceled",
};

const CALL_WORDS: Partial<Record<ToolUIPart["state"], string>> = {
  "output-available": "done",
  "output-error": "failed",
};
