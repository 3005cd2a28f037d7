// Turns: how they begin and end, and what is said in them.
import type { LogEvent } from "../api/types";
import { append, closed, newCall, withoutParts } from "./blocks";
import { NONE, plus, totalOf } from "./usage";
import { shown } from "./values";
import type { Block, SaidBlock, Turn, TurnError, View } from "./view";

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
    usage: NONE,
  };
  const turns = view.turns.filter((each) => each !== old && each.id !== turn.id);
  return { ...view, turns: [...turns, turn], session: { ...view.session, state: "queued", turn_id: turn.id } };
}

/** What a turn was told before its answer: it stands before the answer that is made instead, too. */
function heard(turn: Turn): Block[] {
  const last = turn.blocks.findLastIndex((each) => "input_id" in each && each.input_id);
  return [...turn.kept, ...turn.blocks.slice(0, last + 1)];
}

function started(view: View, event: Of<"turn.started"> | Of<"turn.resumed">): View {
  const { attempt } = event.data;
  const dropped = (event.type === "turn.resumed" && event.data.dropped) || [];
  const model = event.type === "turn.started" ? event.data.model : undefined;
  const session = { ...view.session, state: "running" as const, turn_id: event.turn_id };
  return change({ ...view, session }, event.turn_id, (turn) => ({
    ...said(withoutParts(turn, dropped)),
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
    const usage = totalOf(turn.usage, event.data.usage);
    const over = { ...closed(turn, event.type), ended_at: event.at, place: null, until: null, usage };
    if (event.type === "turn.failed") return { ...over, state: "failed", error: withoutUsage(event.data) };
    if (event.type === "turn.stopped") return { ...over, state: "stopped", stop_reason: event.data.reason };
    return completed(over, event);
  });
}

function withoutUsage({ usage: _, ...error }: Of<"turn.failed">["data"]): TurnError {
  return error;
}

function completed(turn: Turn, event: Of<"turn.completed">): Turn {
  const { text, output, output_type } = event.data;
  const over: Turn = { ...turn, state: "completed", output: shown(output), output_type: output_type ?? null };
  if (!text) return over;
  return append({ ...over, text }, { type: "note", kind: "closing", text, task_ids: [], at: event.at });
}

function noted(view: View, event: LogEvent, kind: string, text: string): View {
  const details = event.data as { [name: string]: unknown };
  return change(view, event.turn_id, (turn) =>
    append(turn, { type: "note", kind, text, task_ids: [], details, at: event.at }),
  );
}

function answered(view: View, event: Of<"response.completed">): View {
  const { usage, model } = event.data;
  return change(view, event.turn_id, (turn) => ({
    ...turn,
    usage: plus(turn.usage, usage),
    model: turn.model ?? model ?? null,
  }));
}

function dropped(view: View, event: Of<"response.dropped">): View {
  return change(view, event.turn_id, (turn) => said(withoutParts(turn, event.data.dropped)));
}

export const turns = { change, queued, started, ended, noted, answered, dropped };

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
    return change(view, event.turn_id, (turn) => {
      const place = turn.blocks.findLastIndex((each) => "part" in each && each.part === part);
      const block = turn.blocks[place];
      if (block?.type === "call" && block.state === "asked")
        return { ...turn, blocks: turn.blocks.with(place, { ...block, args: `${block.args ?? ""}${text}` }) };
      if ((block?.type !== "text" && block?.type !== "reasoning") || block.cut) return turn;
      return said({ ...turn, blocks: turn.blocks.with(place, { ...block, text: block.text + text }) });
    });
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

/** The text of a turn is what the model said last: all texts of its last response that has any. */
function said(turn: Turn): Turn {
  const texts = turn.blocks.flatMap((each) => (each.type === "text" ? [each as SaidBlock] : []));
  const response = of(texts.at(-1)?.part ?? "");
  return { ...turn, text: texts.flatMap((each) => (of(each.part) === response ? [each.text] : [])).join("") };
}

function of(part: string): string {
  return part.slice(0, Math.max(0, part.lastIndexOf(".")));
}
