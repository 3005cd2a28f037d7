// What comes over the one stream, put into the views. The stream tells of every session a little, and all of those that it
// was asked for: only what comes whole, from where a view stands or before, may move it on. Else a piece that was told of
// beside would be taken for the next one, and what lies between would be passed over when it comes.
import type { LogEvent } from "../api/types";
import { reduce } from "./reduce";
import type { View } from "./view";

/** `from`: after which number the stream tells all of this session; null where it does not. */
export type Arrival = { event: LogEvent; from: number | null };

/** From which number on the stream tells all, for each session that it was asked for. */
export type Carried = Readonly<Record<string, number>>;

export function arrivals(events: readonly LogEvent[], carried: Carried): Arrival[] {
  return events.map((event) => ({
    event,
    from: event.session_id === null ? null : (carried[event.session_id] ?? null),
  }));
}

export function taken(views: Record<string, View>, given: readonly Arrival[]): Record<string, View> {
  const after = { ...views };
  for (const { event, from } of given) {
    const id = event.session_id;
    const view = id === null ? undefined : after[id];
    if (id !== null && view !== undefined && from !== null && from <= view.as_of) after[id] = reduce(view, event);
  }
  return after;
}
