import { describe, expect, it } from "vitest";
import type { LogEvent, Task, TaskSnapshot } from "../src/api/types";
import { lastCharacters, lastLine, linesOf, spansOf } from "../src/tasks/lines";
import { isNew, merged, patched, ranked, told, unknown } from "../src/tasks/live";

const ESC = "\u001b";

function task(id: string, state: string, rest: Partial<Task> = {}): Task {
  return { id, state, created_at: "2026-01-01T00:00:00Z", args: { whole: true }, error: null, ...rest } as Task;
}

function event(type: string, snapshot: Partial<TaskSnapshot>): LogEvent {
  return { type, data: { task: snapshot } } as unknown as LogEvent;
}

describe("output as lines", () => {
  it("shows what a terminal shows of a line that was written over", () => {
    expect(linesOf("10 %\r50 %\r100 %\nnext\r\n").map((each) => each.text)).toEqual(["100 %", "next"]);
  });
  it("lets colours go on over lines, until they are taken back", () => {
    const lines = linesOf(`a ${ESC}[31mred\nstill${ESC}[0m\nplain`);
    expect(lines.map((each) => spansOf(each).map((span) => [span.text, span.className]))).toEqual([
      [
        ["a ", ""],
        ["red", "ansi-red"],
      ],
      [["still", "ansi-red"]],
      [["plain", ""]],
    ]);
  });
  it("leaves out what moves the cursor and names windows", () => {
    expect(linesOf(`${ESC}[2Kdone${ESC}]0;title\u0007!`)[0]?.text).toBe("done!");
  });
  it("knows the last line that says something", () => {
    expect(lastLine(`one\n${ESC}[32mtwo${ESC}[0m\n\n`)).toBe("two");
    expect(lastLine("")).toBeNull();
  });
  it("counts characters as the server does", () => {
    expect(lastCharacters("a🙂b🙂", 2)).toBe("b🙂");
    expect(lastCharacters("ab", 5)).toBe("ab");
  });
});

describe("what the feed tells of tasks", () => {
  it("goes into the lists without losing what only the server has", () => {
    const news = told([event("task.changed", { id: "tsk_a", state: "running", args: { cut: true } })]);
    const [a, b] = patched([task("tsk_a", "queued"), task("tsk_b", "queued")], news);
    expect([a?.state, a?.args, b?.state]).toEqual(["running", { whole: true }, "queued"]);
  });
  it("leaves a list alone that it does not concern", () => {
    const items = [task("tsk_a", "queued")];
    expect(patched(items, new Map())).toBe(items);
  });
  it("has the lists asked for again only when a state changes or a task is new", () => {
    const events = [event("task.changed", { id: "tsk_a", state: "running" })];
    expect(isNew(events, new Map([["tsk_a", "running"]]))).toBe(false);
    expect(isNew(events, new Map([["tsk_a", "queued"]]))).toBe(true);
    expect(isNew(events, new Map())).toBe(true);
  });
  it("shows first what needs somebody", () => {
    const lost = task("tsk_u", "failed", { error: { kind: "interrupted" } });
    const order = ranked([
      task("tsk_done", "succeeded"),
      task("tsk_run", "running"),
      task("tsk_ask", "awaiting_input", { created_at: "2026-01-02T00:00:00Z" }),
      lost,
    ]);
    expect(order.map((each) => each.id)).toEqual(["tsk_ask", "tsk_u", "tsk_run", "tsk_done"]);
    expect(merged(lost, undefined)).toBe(lost);
  });
  it("says of each end what is not known, until somebody has said it", () => {
    const ended = (kind: string, rest: Partial<Task> = {}) =>
      unknown(task("tsk_u", "failed", { error: { kind }, ...rest }));
    expect(ended("interrupted")).toBe("was interrupted: did it work?");
    expect(ended("abandoned")).toBe("ignored its cancel: did it work?");
    expect(ended("crash_loop", { may_run_again: true })).toMatch("may be run again without harm");
    expect(ended("crash_loop", { settled: { verdict: "worked", by: "ada", note: "" } } as Partial<Task>)).toBeNull();
    expect(ended("failed")).toBeNull();
  });
});
