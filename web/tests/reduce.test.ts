// The reducer on small logs: what is shown after each, and that nothing is shown twice.
import { beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Session, TaskSnapshot } from "../src/api/types";
import { reduce, reduceAll } from "../src/log/reduce";
import { type Block, opened, type View } from "../src/log/view";

let number = 0;

function event(type: LogEvent["type"], data: object, ids: { turn_id?: string; task_id?: string } = {}): LogEvent {
  number += 1;
  const at = new Date(1_790_000_000_000 + number * 1_000).toISOString();
  const given = { number, type, at, session_id: "ses_1", turn_id: "trn_1", task_id: null, data, ...ids };
  return given as unknown as LogEvent;
}

beforeEach(() => {
  number = 0;
});

function empty(): View {
  const session = { id: "ses_1", state: "idle", is_held: false } as Session;
  return opened({ as_of: 0, feed: "1.0", session, turns: [], next: null, inbox: [], tasks: [] });
}

const begun = () => [
  event("turn.queued", { origin: "user" }),
  event("input.accepted", { input_id: "inp_1", kind: "message", mode: "steer", text: "hello", key: "k" }),
  event("turn.started", { attempt: 1, worker_id: null, model: "m" }),
  event("input.delivered", { input_id: "inp_1", kind: "message", text: "hello" }),
];
const said = (part: string, ...texts: string[]) => [
  event("part.started", { part, kind: "text" }),
  ...texts.map((text, index) => event("part.delta", { part, offset: index, text })),
];
const words = (blocks: readonly Block[] = []) => blocks.map((each) => ("text" in each ? each.text : each.type));
const task = (fields: object) => ({
  task: { id: "tsk_1", title: "survey", state: "running", ...fields } as TaskSnapshot,
});

describe("a turn", () => {
  it("shows what is said where it was said", () => {
    const view = reduceAll(empty(), [...begun(), ...said("0.0", "Hel", "lo"), event("part.ended", { part: "0.0" })]);
    expect(words(view.turns[0]?.blocks)).toEqual(["hello", "Hello"]);
    expect(view.turns[0]).toMatchObject({ state: "running", text: "Hello", model: "m" });
    expect(view.inbox).toEqual([]);
  });

  it("takes nothing twice, however often it is told", () => {
    const log = [...begun(), ...said("0.0", "One", " two"), event("turn.completed", { output: "One two" })];
    const whole = reduceAll(empty(), log);
    for (let from = 0; from < log.length; from++) expect(reduceAll(whole, log.slice(from))).toEqual(whole);
    const half = reduceAll(empty(), log.slice(0, 6));
    expect(reduceAll(half, log)).toEqual(reduceAll(half, log.slice(6)));
  });

  it("leaves out what was dropped", () => {
    const log = [...begun(), ...said("0.0", "lost"), event("turn.resumed", { attempt: 2, dropped: ["0.0"] })];
    const view = reduceAll(empty(), [...log, ...said("1.0", "kept")]);
    expect(words(view.turns[0]?.blocks)).toEqual(["hello", "kept"]);
  });

  it("does not touch turns that have not changed", () => {
    const first = reduceAll(empty(), [...begun(), event("turn.completed", { output: "" })]);
    const second = reduce(first, event("turn.queued", { origin: "user" }, { turn_id: "trn_2" }));
    expect(second.turns[0]).toBe(first.turns[0]);
    expect(second.turns).toHaveLength(2);
  });

  it("stands in the place of the one that it replaces, with what that was told", () => {
    const first = reduceAll(empty(), [...begun(), ...said("0.0", "old"), event("turn.completed", { output: "old" })]);
    const again = { origin: "regenerate", regenerates: "trn_1" };
    const view = reduce(first, event("turn.queued", again, { turn_id: "trn_2" }));
    expect(view.turns.map((each) => [each.id, words(each.kept)])).toEqual([["trn_2", ["hello"]]]);
  });
});

describe("a call", () => {
  const asked = () => [
    event("part.started", { part: "0.1", kind: "call", call_id: "c1", tool: "survey" }),
    event("part.delta", { part: "0.1", offset: 0, text: '{"river"' }),
    event("call.started", { call_id: "c1", tool: "survey", args: '{"river":"Loire"}' }),
  ];
  const callIn = (view: View) => view.turns[0]?.blocks.at(-1);

  it("goes on as a task, and its end comes in the same place", () => {
    const log = [
      ...begun(),
      ...asked(),
      event("task.created", task({ call_id: "c1" }), { task_id: "tsk_1" }),
      event("call.ended", { call_id: "c1", tool: "survey", outcome: "parked", part: {}, task_id: "tsk_1" }),
      event("task.changed", task({ progress: { current: 1, total: 4 } }), { task_id: "tsk_1" }),
    ];
    const view = reduceAll(empty(), log);
    expect(callIn(view)).toMatchObject({ type: "call", state: "ended", outcome: "parked", task_id: "tsk_1" });
    expect(view.tasks.tsk_1).toMatchObject({ state: "running", progress: { current: 1 } });
    const after = reduce(view, event("task.ended", task({ state: "succeeded" }), { task_id: "tsk_1" }));
    expect(after.tasks.tsk_1?.state).toBe("succeeded");
  });

  it("that a resumed attempt did not ask for has a place of its own", () => {
    const before = begun();
    const ended = event("call.ended", { call_id: "c9", tool: "boom", outcome: "failed", part: { content: "no" } });
    expect(callIn(reduceAll(empty(), [...before, ended]))).toMatchObject({
      call_id: "c9",
      outcome: "failed",
      result: "no",
    });
  });

  it("that did not run to its end is not shown as running when its turn is over", () => {
    const view = reduceAll(empty(), [...begun(), ...asked(), event("turn.stopped", { reason: "user" })]);
    expect(callIn(view)).toMatchObject({ state: "ended", outcome: null });
  });
});

describe("the inbox", () => {
  it("keeps what waits, as it was changed, until it is taken back or told", () => {
    const log = [
      event("input.accepted", { input_id: "inp_1", kind: "message", mode: "queue", text: "one" }),
      event("input.accepted", { input_id: "inp_2", kind: "message", mode: "queue", text: "two" }),
      event("input.edited", { input_id: "inp_2", text: "three" }),
      event("input.removed", { input_id: "inp_1" }),
    ];
    expect(reduceAll(empty(), log).inbox.map((each) => each.text)).toEqual(["three"]);
  });
});

describe("a server that is newer than the page", () => {
  it("may tell of what nobody knows here", () => {
    const view = empty();
    const after = reduce(view, event("later.invented" as LogEvent["type"], {}));
    expect({ ...after, as_of: 0, last_at: null }).toEqual(view);
  });
});
