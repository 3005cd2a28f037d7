import { describe, expect, it } from "vitest";
import { bodyOf, type Draft, inZone, sayFire, timeOf } from "../src/schedules/words";
import { dollars } from "../src/usage/money";

const DRAFT: Draft = {
  what: "text",
  session_id: "ses_a",
  text: "Look.",
  tool: "count",
  args: "",
  title: " ",
  when: "cron",
  time: " 0 8 * * * ",
  zone: "Europe/Berlin",
  missed: "skip",
  overlap: "queue",
  condition: "above",
  path: "",
  value: "",
};

describe("a schedule as it is sent", () => {
  it("says something at its times", () => {
    expect(bodyOf(DRAFT)).toEqual({
      session_id: "ses_a",
      missed: "skip",
      overlap: "queue",
      cron: "0 8 * * *",
      zone: "Europe/Berlin",
      text: "Look.",
    });
  });
  it("watches until a number is above another", () => {
    const body = bodyOf({ ...DRAFT, what: "monitor", value: "7", path: "a.b", args: '{"of": 1}' });
    expect(body).toMatchObject({ tool: "count", args: { of: 1 }, condition: { kind: "above", value: 7, path: "a.b" } });
    expect(body).not.toHaveProperty("text");
  });
  it("is refused with words where JSON is none", () => {
    expect(() => bodyOf({ ...DRAFT, what: "tool", args: "{" })).toThrow("must be JSON");
  });
  it("has no time while none is written", () => {
    expect(timeOf({ when: "at", time: "  ", zone: "UTC" })).toBeNull();
  });
});

describe("words", () => {
  it("keeps a time in its own zone", () => expect(inZone("2026-11-19T08:00:00+01:00")).toBe("2026-11-19 08:00"));
  it("tells what fired from what ran", () => {
    expect(sayFire({ outcome: "ran", count: 1, how: "triggered" })).toBe("ran, by hand");
    expect(sayFire({ outcome: "skipped", count: 3, how: "due" })).toBe("skipped, for 3 times");
  });
  it("shows small sums", () => {
    expect([dollars(0), dollars(1_500_000), dollars(1_200)]).toEqual(["$0.00", "$1.50", "$0.0012"]);
  });
});
