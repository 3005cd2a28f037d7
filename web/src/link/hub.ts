// The one event connection of a browser: what all tabs want in one stream, read on after every break.
//
// It knows how far it has read in each log. A tab that opened a session earlier gets the stream from where it stands,
// and passes over what it has; so nothing is lost, and nothing is shown twice.
import type { LogEvent } from "../api/types";
import type { LinkState, OutputPiece, ToHub, ToTab, Wants } from "./protocol";
import { type Frame, frames } from "./stream";

export type Port = { postMessage(message: ToTab): void };

const MOST_LOGS = 20;
const FIRST_WAIT = 300;
const LONGEST_WAIT = 10_000;
const SILENCE = 25_000;

export class Hub {
  private readonly tabs = new Map<Port, Wants>();
  private readonly logs = new Map<string, number>();
  private readonly heads = new Map<string, number | "end">();
  private carried: Record<string, number> = {};
  private cursor: string | null = null;
  private state: LinkState = { is: "connecting" };
  private opened: ToTab | null = null;
  private stop: AbortController | null = null;
  private asked = "";
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private silence = SILENCE;

  take(port: Port, message: ToHub): void {
    if ("bye" in message) this.tabs.delete(port);
    else if ("nudge" in message) return this.nudge();
    else this.tabs.set(port, message.wants);
    if ("wants" in message) {
      port.postMessage({ state: this.state });
      if (this.opened) port.postMessage(this.opened);
      for (const [id, from] of Object.entries(message.wants.sessions)) this.rewind(id, from);
      for (const [id, from] of Object.entries(message.wants.outputs)) this.rewindOutput(id, from);
    }
    if (this.tabs.size === 0) this.close();
    else if (this.key() !== this.asked || this.stop === null) this.connect();
  }

  /** What one tab has not seen yet is told again, to all. */
  private rewind(id: string, from: number): void {
    const at = this.logs.get(id);
    if (at !== undefined && from >= at) return;
    this.logs.set(id, from);
    this.asked = "";
  }

  private rewindOutput(id: string, from: number | "end"): void {
    const at = this.heads.get(id);
    if (at !== undefined && (from === "end" || (at !== "end" && from >= at))) return;
    this.heads.set(id, from);
    this.asked = "";
  }

  private nudge(): void {
    if (this.state.is === "waiting" || this.state.is === "signed-out") this.connect();
  }

  private ids(): string[] {
    const wanted = [...this.tabs.values()].flatMap((each) => Object.keys(each.sessions));
    return [...new Set(wanted)].sort().slice(-MOST_LOGS);
  }

  private outputs(): string[] {
    const wanted = [...this.tabs.values()].flatMap((each) => Object.keys(each.outputs));
    return [...new Set(wanted)].sort().slice(-MOST_LOGS);
  }

  private key(): string {
    return JSON.stringify([this.ids(), this.outputs()]);
  }

  private close(): void {
    clearTimeout(this.timer);
    this.stop?.abort();
    this.stop = null;
    this.asked = "";
    this.cursor = null;
    this.logs.clear();
    this.heads.clear();
  }

  private url(): string {
    const [first] = this.tabs.values();
    const url = new URL("v1/events", first?.base);
    const feeds = [...this.tabs.values()].map((each) => each.feed).filter((each) => each !== null);
    url.searchParams.set("after", this.cursor ?? feeds[0] ?? "now");
    const ids = this.ids();
    for (const id of this.logs.keys()) if (!ids.includes(id)) this.logs.delete(id);
    this.carried = Object.fromEntries(ids.map((id) => [id, this.logs.get(id) ?? 0]));
    const sessions = Object.entries(this.carried).map(([id, from]) => `${id}:${from}`);
    if (sessions.length > 0) url.searchParams.set("sessions", sessions.join(","));
    const tasks = this.outputs();
    for (const id of this.heads.keys()) if (!tasks.includes(id)) this.heads.delete(id);
    const places = tasks.map((id) => `${id}:${this.heads.get(id) ?? "end"}`);
    if (places.length > 0) url.searchParams.set("outputs", places.join(","));
    return url.href;
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.stop?.abort();
    const stop = new AbortController();
    this.stop = stop;
    this.asked = this.key();
    if (this.state.is !== "live") this.say({ is: "connecting" });
    void this.read(stop)
      .catch(() => undefined)
      .then(() => stop === this.stop && this.again());
  }

  private async read(stop: AbortController): Promise<void> {
    for await (const frame of frames(this.url(), stop, () => this.silence)) {
      if (stop !== this.stop) return;
      if ("status" in frame) {
        if (frame.status === 200) this.failures = 0;
        else return this.refused(frame.status);
      } else this.hear(frame.batch);
    }
  }

  private refused(status: number): void {
    if (status === 401) return this.say({ is: "signed-out" });
    if (status === 400 || status === 404 || status === 410 || status === 422) {
      // A session was deleted meanwhile, or the cursor is too old: every tab looks at what it shows anew.
      this.cursor = null;
      this.logs.clear();
      for (const [port, wants] of this.tabs) this.tabs.set(port, { ...wants, feed: null, sessions: {}, outputs: {} });
      this.tell({ expired: true });
    }
  }

  private again(): void {
    this.stop = null;
    if (this.state.is === "signed-out") return;
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.failures++) * (0.7 + 0.6 * Math.random());
    this.say({ is: "waiting", retry_at: Date.now() + wait });
    this.timer = setTimeout(() => this.connect(), wait);
  }

  private hear(batch: readonly Frame[]): void {
    const events: LogEvent[] = [];
    const outputs: OutputPiece[] = [];
    for (const { id, body } of batch) {
      if (id) this.cursor = id;
      const type = body.type as string;
      if (type === "stream.opened") this.begin(body);
      else if (type === "stream.live") this.say({ is: "live" });
      else if (type === "task.output") outputs.push(this.output(body));
      else if (type === "stream.expired") this.tell({ expired: true });
      else if (type === "stream.lagged") this.asked = "";
      else events.push(this.event(body as unknown as LogEvent));
    }
    if (events.length > 0) this.tell({ events, carried: this.carried });
    if (outputs.length > 0) this.tell({ outputs });
  }

  private event(event: LogEvent): LogEvent {
    const { session_id: id, number } = event;
    const at = id === null ? undefined : this.logs.get(id);
    if (id !== null && at !== undefined && number !== null && number > at) this.logs.set(id, number);
    return event;
  }

  private output(body: Record<string, unknown>): OutputPiece {
    const piece = (body.data ?? body) as OutputPiece;
    if (this.heads.has(piece.task_id)) this.heads.set(piece.task_id, piece.next_offset);
    return piece;
  }

  private begin(body: Record<string, unknown>): void {
    const data = (body.data ?? body) as Record<string, unknown>;
    if (typeof data.cursor === "string") this.cursor ??= data.cursor;
    const places = (data.outputs ?? {}) as Record<string, number>;
    for (const [id, at] of Object.entries(places)) if (this.heads.get(id) === "end") this.heads.set(id, at);
    if (typeof data.heartbeat_seconds === "number") this.silence = Math.max(2_000, data.heartbeat_seconds * 2_200);
    const now = typeof data.now === "string" ? Date.parse(data.now) : Date.now();
    this.opened = { opened: { clock_offset: now - Date.now(), version: String(data.version ?? "") || null } };
    this.tell(this.opened);
    this.say({ is: "replaying" });
  }

  private say(state: LinkState): void {
    this.state = state;
    this.tell({ state });
  }

  private tell(message: ToTab): void {
    for (const port of this.tabs.keys()) port.postMessage(message);
  }
}
