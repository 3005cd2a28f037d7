// What the chat says of itself in words: what it waits for, what happened meanwhile, and the name of the tab.
import { describe, expect, it } from "vitest";
import type { Session, TaskSnapshot } from "../src/api/types";
import { whileAway } from "../src/chat/away";
import { waitsFor } from "../src/chat/waits";
import { opened, type Turn, type View, type WakeBlock } from "../src/log/view";
import { nameOfTab } from "../src/ui/title";

function view(turn: Partial<Turn>, session: Partial<Session> = {}, tasks: Partial<TaskSnapshot>[] = []): View {
  const whole = { id: "trn_1", state: "running", blocks: [], kept: [], ...turn } as unknown as Turn;
  return opened({
    as_of: 0,
    feed: "1.0",
    session: { id: "ses_1", ...session } as Session,
    turns: [whole],
    next: null,
    inbox: [],
    tasks: tasks as TaskSnapshot[],
  });
}
const call = (fields: object) =>
  ({ type: "call", call_id: "c1", tool: "survey", state: "running", files: [], ...fields }) as never;

describe("what a session waits for", () => {
  it.each<[string, View]>([
    ["No worker runs the agent clerk: start one that does.", view({ state: "queued" }, { no_worker_for: "clerk" })],
    ["Waits for a free place: number 3.", view({ state: "queued", place: 3 })],
    ["Waits for a worker to begin. New work may be paused.", view({ state: "queued" })],
    ["Waits for the tool survey.", view({ blocks: [call({})] })],
    ["Waits for survey: nobody answered.", view({ blocks: [call({ state: "waiting", reason: "nobody answered" })] })],
    [
      "Waits for you: see above.",
      view({ blocks: [call({})] }, {}, [{ id: "tsk_1", call_id: "c1", state: "awaiting_input" }]),
    ],
    ["The model is still writing what to call.", view({ blocks: [call({ state: "asked" })] })],
    ["The model has paused in its answer.", view({ blocks: [{ type: "text", part: "0", text: "A", is_open: true }] })],
    ["Waits for the model's answer.", view({})],
  ])("%s", (words, given) => expect(waitsFor(given)).toBe(words));
  it("is the end of a pause, for who may know of it", () =>
    expect(waitsFor(view({ state: "queued" }), true)).toBe(
      "New work is paused on this server: it begins when that ends.",
    ));
  it("is the limit of today, with when that ends", () =>
    expect(waitsFor(view({ state: "queued", until: "2026-01-02T00:00:00Z" }))).toMatch(
      "The limit of today is reached",
    ));
  it("is nothing when its turn is over", () => expect(waitsFor(view({ state: "completed" }))).toBeNull());
});

describe("while somebody was away", () => {
  const ended = (fields: Partial<Turn> = {}) =>
    view({ state: "completed", ended_at: "2026-01-02T00:00:00Z", ...fields });
  it("is said of what ended since then", () => {
    const wake: WakeBlock = { type: "wake", input_id: "inp_1", task_ids: [], text: "", at: "" };
    const asked = view({ state: "completed", ended_at: "2026-01-02T00:00:00Z", blocks: [wake] }, {}, [
      { id: "tsk_1", state: "awaiting_input" },
    ]);
    expect(whileAway(asked, "2026-01-01T00:00:00Z")).toEqual({
      first: "trn_1",
      words: "1 answer, 1 end of background work, 1 question waits",
    });
    expect(whileAway(ended({ state: "failed" }), "2026-01-01T00:00:00Z")?.words).toBe("1 failure");
  });
  it("is not said of what was seen, nor to who comes for the first time", () => {
    expect(whileAway(ended(), "2026-01-03T00:00:00Z")).toBeNull();
    expect(whileAway(ended(), null)).toBeNull();
  });
});

describe("the name of the tab", () => {
  it("has what waits for a person on every page", () => {
    expect([nameOfTab(null, 0), nameOfTab(null, 2), nameOfTab("Herons", 1)]).toEqual([
      "Outlast",
      "(2) Outlast",
      "(1) Herons · Outlast",
    ]);
  });
});
