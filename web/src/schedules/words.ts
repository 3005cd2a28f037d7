// Times and outcomes of schedules in words.
import type { Fire, Schedule } from "../api/types";

/** When it fires, as it was said. */
export function timesOf(schedule: Pick<Schedule, "cron" | "at" | "zone">): string {
  if (schedule.cron) return `${schedule.cron} · ${schedule.zone}`;
  return schedule.at ? `once, ${inZone(schedule.at)}` : schedule.zone;
}

/** In the schedule's own zone, as the server wrote it. */
export function inZone(at: string): string {
  const [day = "", time = ""] = at.split("T");
  return `${day} ${time.slice(0, 5)}`;
}

export function here(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

const REASONS: Record<string, string> = {
  asked: "somebody paused it",
  session_archived: "its chat is archived",
  agent_gone: "its agent is no longer there",
  broken: "its times cannot be found any more: edit it",
  tool_gone: "its tool is no longer there",
  done: "it has fired for the last time",
  canceled: "it was cancelled",
};

export function sayReason(schedule: Pick<Schedule, "reason">): string | null {
  return schedule.reason === null ? null : (REASONS[schedule.reason] ?? schedule.reason);
}

const OUTCOMES: Record<Fire["outcome"], string> = {
  fired: "fired, has not begun yet",
  ran: "ran",
  removed: "was taken back before it began",
  queued: "waits for the fire before it",
  skipped: "skipped",
  failed: "failed",
};

export function sayFire(fire: Pick<Fire, "outcome" | "count" | "how">): string {
  const times = fire.count > 1 ? `, for ${fire.count} times` : "";
  return `${OUTCOMES[fire.outcome]}${times}${fire.how === "triggered" ? ", by hand" : ""}`;
}

export type Draft = {
  what: "text" | "tool" | "monitor";
  session_id: string;
  text: string;
  tool: string;
  args: string;
  title: string;
  when: "cron" | "at" | "delay";
  time: string;
  zone: string;
  missed: string;
  overlap: string;
  condition: string;
  path: string;
  value: string;
};

/** What the time is, for the server; null while nothing is written. */
export function timeOf(draft: Pick<Draft, "when" | "time" | "zone">): Record<string, string> | null {
  const time = draft.time.trim();
  return time === "" ? null : { [draft.when]: time, zone: draft.zone };
}

/** As it is sent. Throws if what should be JSON is none. */
export function bodyOf(draft: Draft): Record<string, unknown> {
  const { what, session_id, title, missed, overlap } = draft;
  const body: Record<string, unknown> = { session_id, missed, overlap, ...timeOf(draft) };
  if (title.trim()) body.title = title.trim();
  if (what === "text") return { ...body, text: draft.text };
  body.tool = draft.tool.trim();
  if (draft.args.trim()) body.args = read(draft.args, "The arguments");
  if (what === "monitor") body.condition = conditionOf(draft);
  return body;
}

function conditionOf({ condition: kind, path, value }: Draft): Record<string, unknown> {
  const found: Record<string, unknown> = { kind };
  if (path.trim()) found.path = path.trim();
  if (kind === "changed") return found;
  if (kind === "matches") return { ...found, value };
  return { ...found, value: read(value, "What it is compared with") };
}

function read(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name} must be JSON: a text stands in quotes.`);
  }
}
