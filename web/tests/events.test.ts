// The fixtures that the server's own fold is held to: the same events make the same turns here.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { LogEvent, Session } from "../src/api/types";
import { reduceAll } from "../src/log/reduce";
import { opened, type Turn } from "../src/log/view";

const FOLDER = new URL("../../tests/fixtures/events/", import.meta.url);
type Fixture = { events: LogEvent[]; view: { turns: Turn[] } };

function names(): string[] {
  try {
    return readdirSync(FOLDER).filter((each) => each.endsWith(".json"));
  } catch {
    return [];
  }
}

/** A field that may be left out may be null, too. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  return Object.fromEntries(kept.map(([name, each]) => [name, plain(each)]));
}

describe("the fixtures", () => {
  it.each(names())("%s", (name) => {
    const { events, view } = JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as Fixture;
    const session = { id: events[0]?.session_id, state: "idle", is_held: false } as Session;
    const before = opened({ as_of: 0, feed: "", session, turns: [], next: null, inbox: [], tasks: [] });
    expect(plain(reduceAll(before, events).turns)).toEqual(plain(view.turns));
  });
});
