// Turns: how they begin and end, what is said in them, and their calls.
import type { LogEvent } from "../api/types";
import { append, changeCall, changeSaid, closed, newCall, withoutParts } from "./blocks";
import type { Block, CallBlock, ShownFile, Turn, Usage, View } from "./view";

type Of<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;

export function change(view: View, id: string | null, make: (turn: Turn) => Turn): View {
  const place = view.turns.findLastIndex((each) => each.id === id);
  const found = view.turns[place];
  if (found === undefined) return view;
  const made = make(found);
  return made === found ? view : { ...view, turns: view.turns.with(place, made) };
}

function queued(view: View, event: Of<"turn.queued">): View {
  const { origin, place, until, regenerates } = event.data;
  const old = view.turns.find((each) => each.id === regenerates);
  const turn: Turn = {
    id: event.turn_id ?? "",
    origin,
    state: "queued",
    attempt: 0,
    place: place ?? null,
    until: until ?? null,
    regenerates: regenerates ?? null,
    queued_at: event.at,
    kept: old === undefined ? [] : heard(old),
    blocks: [],
    left_out: 0,
    text: "",
  };
  const turns = view.turns.filter((each) => each !== old && each.id !== turn.id);
  return { ...view, turns: [...turns, turn], session: { ...view.session, state: "queued", turn_id: turn.id } };
}

/** What a turn was told before its answer: it stands before the answer that is made instead, too. */
function heard(turn: Turn): Block[] {
  const whole = [...turn.kept, ...turn.blocks];
  const last = whole.findLastIndex((each) => each.type === "message" || each.type === "wake" || "input_id" in each);
  return whole.slice(0, last + 1);
}

function started(view: View, event: Of<"turn.started"> | Of<"turn.resumed">): View {
  const { attempt } = event.data;
  const dropped = (event.type === "turn.resumed" && event.data.dropped) || [];
  const model = event.type === "turn.started" ? event.data.model : undefined;
  const session = { ...view.session, state: "running" as const, turn_id: event.turn_id };
  return change({ ...view, session }, event.turn_id, (turn) => ({
    ...withoutParts(turn, dropped),
    state: "running",
    attempt,
    model: model ?? turn.model ?? null,
    started_at: turn.started_at ?? event.at,
    place: null,
    until: null,
  }));
}

function ended(view: View, event: Of<"turn.completed"> | Of<"turn.failed"> | Of<"turn.stopped">): View {
  const isHeld = view.session.is_held;
  const session = { ...view.session, state: isHeld ? ("held" as const) : ("idle" as const), turn_id: null };
  return change({ ...view, session }, event.turn_id, (turn) => {
    const over = { ...closed(turn), ended_at: event.at, usage: (event.data.usage as Usage | undefined) ?? turn.usage };
    if (event.type === "turn.failed") return { ...over, state: "failed", error: event.data };
    if (event.type === "turn.stopped") return { ...over, state: "stopped", stop_reason: event.data.reason };
    return completed(over, event);
  });
}

function completed(turn: Turn, event: Of<"turn.completed">): Turn {
  const { text, output, output_type } = event.data;
  const over: Turn = { ...turn, state: "completed", output, output_type: output_type ?? null };
  if (!text) return over;
  return append({ ...over, text }, { type: "note", kind: "closing", text, task_ids: [], at: event.at });
}

function noted(view: View, event: LogEvent, kind: string, text: string): View {
  const details = event.data as { [name: string]: unknown };
  const id = event.turn_id ?? view.turns.at(-1)?.id ?? null;
  return change(view, id, (turn) => append(turn, { type: "note", kind, text, task_ids: [], details, at: event.at }));
}

export const turns = { change, queued, started, ended, noted };

export const parts = {
  started(view: View, event: Of<"part.started">): View {
    const { part, kind, call_id, tool } = event.data;
    return change(view, event.turn_id, (turn) => {
      if (kind === "call") return append(turn, newCall(call_id ?? "", tool ?? "", part));
      if (kind === "text" || kind === "reasoning") return append(turn, { type: kind, part, text: "", is_open: true });
      return append(turn, { type: "file", part, kind, is_open: true });
    });
  },
  grew(view: View, event: Of<"part.delta">): View {
    const { part, text } = event.data;
    return change(view, event.turn_id, (turn) =>
      changeSaid(turn, part, (block) => (block.cut ? block : { ...block, text: block.text + text })),
    );
  },
  ended(view: View, event: Of<"part.ended">): View {
    return change(view, event.turn_id, (turn) => ({
      ...turn,
      blocks: turn.blocks.map((each) =>
        "is_open" in each && each.part === event.data.part ? { ...each, is_open: false } : each,
      ),
    }));
  },
};

/** Arguments come as the model wrote them: a text that holds JSON. */
export function parsed(args: unknown): unknown {
  if (typeof args !== "string") return args;
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}

type More = { narration?: string | null };

export const calls = {
  started(view: View, event: Of<"call.started">): View {
    const { call_id, tool, args, narration } = event.data as typeof event.data & More;
    const begun = { state: "running" as const, args: parsed(args), started_at: event.at };
    return call(view, event.turn_id, call_id, tool, (block) => ({
      ...block,
      ...begun,
      narration: narration ?? block.narration ?? null,
    }));
  },
  waiting(view: View, event: Of<"call.waiting">): View {
    const { call_id, tool, reason } = event.data;
    return call(view, event.turn_id, call_id, tool, (block) => ({ ...block, state: "waiting", reason }));
  },
  progressed(view: View, event: Of<"call.progress">): View {
    const progress = event.data.progress ?? null;
    return call(view, event.turn_id, event.data.call_id, "", (block) => ({ ...block, progress }));
  },
  ended(view: View, event: Of<"call.ended">): View {
    const { call_id, tool, outcome, part, task_id, content, artifacts, narration } = event.data as typeof event.data &
      More;
    return call(view, event.turn_id, call_id, tool, (block) => ({
      ...block,
      state: "ended",
      outcome,
      result: part.content,
      narration: narration ?? block.narration ?? null,
      task_id: task_id ?? block.task_id ?? null,
      files: (content as ShownFile[] | undefined) ?? block.files,
      artifacts: (artifacts as CallBlock["artifacts"] | undefined) ?? block.artifacts,
      progress: null,
      ended_at: event.at,
    }));
  },
};

function call(view: View, id: string | null, call_id: string, tool: string, make: (block: CallBlock) => CallBlock) {
  return change(view, id, (turn) => changeCall(turn, call_id, tool, make));
}
