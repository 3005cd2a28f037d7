// What tabs and the one connection say to each other.
import type { LogEvent } from "../api/types";
import type { Carried } from "../log/arrivals";

export type LinkState =
  | { is: "connecting" }
  | { is: "replaying" }
  | { is: "live" }
  | { is: "waiting"; retry_at: number }
  | { is: "signed-out" };

/** What this browser was told of the server when the stream was opened. */
export type Opened = { clock_offset: number; version: string | null };

export type OutputPiece = { task_id: string; offset: number; next_offset: number; text: string; cut: number };

/** A tab says all that it wants each time something of it changes; `from` is where it stands in that log. */
export type Wants = {
  base: string;
  feed: string | null;
  sessions: Record<string, number>;
  outputs: Record<string, number | "end">;
};
export type ToHub = { wants: Wants } | { bye: true } | { nudge: true };

export type ToTab =
  | { state: LinkState }
  | { opened: Opened }
  /** `carried`: which sessions the stream tells all of, and from where on. */
  | { events: LogEvent[]; carried: Carried }
  | { outputs: OutputPiece[] }
  /** The stream cannot go on from there: look at everything anew. */
  | { expired: true };
