// What was accepted and the model was not given yet.
import type { LogEvent } from "../api/types";
import { append } from "./blocks";
import { change } from "./turns";
import type { Block, ShownFile, View, Waiting } from "./view";

type Of<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;
/** Fields that older servers leave out. */
type More = { key?: string | null; by?: string | null; files?: ShownFile[] | null; task_ids?: string[] | null };

export function accepted(view: View, event: Of<"input.accepted">): View {
  const { input_id, kind, mode, text, key, by, files, task_ids } = event.data as typeof event.data & More;
  const waiting: Waiting = {
    input_id,
    kind,
    mode: mode ?? null,
    text,
    key: key ?? null,
    task_ids: task_ids ?? [],
    files: files ?? [],
    by: by ?? null,
    created_at: event.at,
  };
  return { ...view, inbox: placed([...view.inbox, waiting]) };
}

export function edited(view: View, event: Of<"input.edited">): View {
  const { input_id, text } = event.data;
  return { ...view, inbox: view.inbox.map((each) => (each.input_id === input_id ? { ...each, text } : each)) };
}

export function removed(view: View, event: Of<"input.removed">): View {
  return { ...view, inbox: placed(view.inbox.filter((each) => each.input_id !== event.data.input_id)) };
}

/** It leaves the inbox and stands where the model was told it. What it held is taken along: the event may say less. */
export function delivered(view: View, event: Of<"input.delivered">): View {
  const { input_id, kind, text, key, by, files, task_ids } = event.data as typeof event.data & More;
  const waited = view.inbox.find((each) => each.input_id === input_id);
  const common = { input_id, text: waited && waited.text.length > text.length ? waited.text : text, at: event.at };
  const tasks = task_ids ?? waited?.task_ids ?? [];
  const block: Block =
    kind === "message"
      ? {
          type: "message",
          ...common,
          key: key ?? waited?.key ?? null,
          files: files ?? waited?.files ?? [],
          mode: waited?.mode ?? null,
          by: by ?? waited?.by ?? null,
        }
      : kind === "wake"
        ? { type: "wake", ...common, task_ids: tasks }
        : { type: "note", ...common, kind: kind === "settlement" ? "settled" : kind, task_ids: tasks };
  const inbox = placed(view.inbox.filter((each) => each.input_id !== input_id));
  return change({ ...view, inbox }, event.turn_id, (turn) => append(turn, block));
}

/** Each message with its place among those that wait. */
function placed(inbox: readonly Waiting[]): Waiting[] {
  let last = 0;
  return inbox.map((each) => {
    const place = each.kind === "message" ? ++last : null;
    return each.place === place ? each : { ...each, place };
  });
}
