// What may move a view on: only a stream that tells all of its session, from where it stands.
import { describe, expect, it } from "vitest";
import type { LogEvent, Session } from "../src/api/types";
import { arrivals, taken } from "../src/log/arrivals";
import { opened, type View } from "../src/log/view";

function view(as_of: number): View {
  const session = { id: "ses_a", state: "idle", is_held: false } as Session;
  return opened({ as_of, feed: "1.0", session, turns: [], next: null, inbox: [], tasks: [] });
}

function event(number: number): LogEvent {
  const data = { input_id: `inp_${number}`, kind: "message", mode: "queue", text: `${number}` };
  const at = "2026-01-01T00:00:00Z";
  return { number, type: "input.accepted", at, session_id: "ses_a", turn_id: null, task_id: null, data } as never;
}
const shown = (views: Record<string, View>) => views.ses_a?.inbox.map((each) => each.text);

describe("what arrives", () => {
  it("passes nothing over when a later event was told of beside, while the page was opening its session", () => {
    const beside = arrivals([event(5)], {});
    const whole = arrivals([event(3), event(4), event(5)], { ses_a: 2 });
    expect(shown(taken({ ses_a: view(2) }, [...beside, ...whole]))).toEqual(["3", "4", "5"]);
  });
  it("waits for a stream that begins where the view stands or before", () => {
    const later = arrivals([event(8)], { ses_a: 7 });
    expect(shown(taken({ ses_a: view(2) }, later))).toEqual([]);
    expect(shown(taken({ ses_a: view(2) }, arrivals([event(2), event(3)], { ses_a: 1 })))).toEqual(["3"]);
  });
  it("goes on over a stream that was opened again, in the order of both", () => {
    const before = arrivals([event(3), event(4)], { ses_a: 2 });
    const after = arrivals([event(5)], { ses_a: 4 });
    expect(shown(taken({ ses_a: view(2) }, [...before, ...after]))).toEqual(["3", "4", "5"]);
  });
  it("leaves other sessions alone", () => {
    const views = { ses_a: view(2) };
    expect(taken(views, arrivals([{ ...event(3), session_id: "ses_b" } as LogEvent], { ses_b: 0 }))).toEqual(views);
  });
});
