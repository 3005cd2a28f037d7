// The fixtures that the server's own fold is held to: the same events make the same view here, from anywhere on.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { LogEvent, Session, TaskSnapshot } from "../src/api/types";
import { reduce, reduceAll } from "../src/log/reduce";
import { opened, type SessionView, type View } from "../src/log/view";

const FOLDER = new URL("../../tests/fixtures/events/", import.meta.url);
type Seen = Pick<SessionView, "as_of" | "turns" | "inbox" | "tasks">;
type Fixture = { events: LogEvent[]; halfway: Seen; view: Seen };

const names = readdirSync(FOLDER).filter((each) => each.endsWith(".json"));

function read(name: string): Fixture {
  return JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as Fixture;
}

function from(seen: Seen): View {
  const session = { id: "ses_1", state: "idle", is_held: false } as Session;
  return opened({ ...seen, feed: "", session, next: null });
}

/** A field that may be left out may be null, too. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  return Object.fromEntries(kept.map(([name, each]) => [name, plain(each)]));
}

/** Without what changes of a task without an event. */
function still({ place: _, output_size: __, last_line: ___, ...task }: TaskSnapshot): object {
  return task;
}

function seen({ as_of, turns, inbox, tasks }: Omit<Seen, "tasks"> & { tasks: View["tasks"] }): unknown {
  return plain({ as_of, turns, inbox, tasks: Object.values(tasks).map(still) });
}

const EMPTY: Seen = { as_of: 0, turns: [], inbox: [], tasks: [] };

describe("the fixtures", () => {
  it("are there", () => expect(names.length).toBeGreaterThan(10));

  it.each(names)("%s: from the beginning", (name) => {
    const { events, view } = read(name);
    expect(seen(reduceAll(from(EMPTY), events))).toEqual(seen(from(view)));
  });

  it.each(names)("%s: from the view that the server has halfway", (name) => {
    const { events, halfway, view } = read(name);
    expect(seen(reduceAll(from(halfway), events))).toEqual(seen(from(view)));
  });

  it.each(names)("%s: from any event on, also when some are told twice", (name) => {
    const { events, view } = read(name);
    let at = from(EMPTY);
    for (const [index, event] of events.entries()) {
      const read = JSON.parse(JSON.stringify(at)) as View;
      expect(seen(reduceAll(read, events.slice(Math.max(0, index - 2))))).toEqual(seen(from(view)));
      at = reduce(at, event);
    }
  });
});
