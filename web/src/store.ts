// What the page knows: the link, the sessions that are open, what was sent and not yet seen in the log, task output.
import { create } from "zustand";
import { address } from "./api/client";
import { problemOf, words } from "./api/problems";
import type { LogEvent, WhenBusy } from "./api/types";
import type { Chosen } from "./files/chosen";
import { Link } from "./link/link";
import type { LinkState, Opened, OutputPiece, ToTab } from "./link/protocol";
import { type Arrival, arrivals, taken } from "./log/arrivals";
import { opened, type SessionView, type Turn, type View } from "./log/view";

export type Pending = {
  key: string;
  text: string;
  mode: WhenBusy;
  files: readonly Chosen[];
  error: string | null;
  input_id?: string;
};
/** `offset`: where the text begins; what is before it is asked for with the task. */
export type Output = { text: string; offset: number; next_offset: number };

type State = {
  link: LinkState;
  server: Opened | null;
  /** The server is no longer of the version that this page came with. */
  isOutdated: boolean;
  views: Record<string, View>;
  failed: Record<string, string>;
  pending: Record<string, Pending[]>;
  outputs: Record<string, Output>;
};

export const useStore = create<State>(() => ({
  link: { is: "connecting" },
  server: null,
  isOutdated: false,
  views: {},
  failed: {},
  pending: {},
  outputs: {},
}));

const { getState: get, setState: set } = useStore;
const MOST_VIEWS = 5;
const TURNS = 30;
const MOST_OUTPUT = 400_000;

type Listener = (events: readonly LogEvent[]) => void;
const listeners = new Set<Listener>();
const anew = new Set<() => void>();
let link: Link | null = null;
let recent: string[] = [];
let outputs: Record<string, number | "end"> = {};
let queue: Arrival[] = [];
let feed: string | null = null;
let isScheduled = false;

export function start(): void {
  link ??= new Link(hear);
  tell();
}

/** Told of everything that comes, after what is shown has changed. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Called when events may have been missed: after the stream was opened again from now on. */
export function onAnew(listener: () => void): () => void {
  anew.add(listener);
  return () => anew.delete(listener);
}

export function retryNow(): void {
  link?.nudge();
}

function tell(): void {
  const { views } = get();
  const sessions = Object.fromEntries(recent.flatMap((id) => (views[id] ? [[id, views[id].as_of]] : [])));
  link?.want(sessions, outputs, feed);
}

function hear(message: ToTab): void {
  if ("state" in message) set({ link: message.state });
  else if ("opened" in message) met(message.opened);
  else if ("events" in message) later(arrivals(message.events, message.carried));
  else if ("outputs" in message) for (const piece of message.outputs) addOutput(piece);
  else refresh();
}

function met(server: Opened): void {
  const before = get().server?.version;
  const isOther = Boolean(before && server.version && before !== server.version);
  set({ server, isOutdated: get().isOutdated || isOther });
}

/** Many small events are shown at once, one drawing a frame; a hidden page has no frames. */
function later(given: Arrival[]): void {
  for (const each of given) queue.push(each);
  if (isScheduled) return;
  isScheduled = true;
  if (document.hidden) setTimeout(flush, 50);
  else requestAnimationFrame(flush);
  if (!document.hidden) setTimeout(() => isScheduled && flush(), 250);
}

function flush(): void {
  if (!isScheduled) return;
  isScheduled = false;
  const given = queue;
  queue = [];
  const events = given.map((each) => each.event);
  noteSeen(events);
  set({ views: taken(get().views, given) });
  for (const each of listeners) each(events);
}

function refresh(): void {
  feed = null;
  const shown = recent;
  recent = [];
  for (const id of shown) void open(id, true);
  tell();
  for (const each of anew) each();
}

/** Shows a session: its view, and from its position on whatever comes. */
export async function open(id: string, isAnew = false): Promise<void> {
  recent = [...recent.filter((each) => each !== id), id].slice(-MOST_VIEWS);
  if (!isAnew && get().views[id]) return tell();
  try {
    const response = await fetch(address(`sessions/${encodeURIComponent(id)}/view`, { turns: TURNS }));
    if (!response.ok) throw await problemOf(response);
    const view = opened((await response.json()) as SessionView);
    feed ??= view.feed;
    const kept = Object.entries(get().views).filter(([each]) => recent.includes(each));
    const { [id]: _, ...failed } = get().failed;
    set({ views: { ...Object.fromEntries(kept), [id]: view }, failed });
  } catch (error) {
    set({ failed: { ...get().failed, [id]: words(error) } });
  }
  tell();
}

/** The turns before those that are shown. */
export async function openOlder(id: string): Promise<void> {
  const before = get().views[id]?.next;
  if (!before) return;
  const response = await fetch(address(`sessions/${encodeURIComponent(id)}/view`, { turns: TURNS, before }));
  if (!response.ok) throw await problemOf(response);
  const page = opened((await response.json()) as SessionView);
  const view = get().views[id];
  if (view?.next !== before) return;
  const known = new Set(view.turns.map((each: Turn) => each.id));
  const turns = [...page.turns.filter((each) => !known.has(each.id)), ...view.turns];
  const tasks = { ...page.tasks, ...view.tasks };
  set({ views: { ...get().views, [id]: { ...view, turns, tasks, next: page.next } } });
}

export function forget(id: string): void {
  recent = recent.filter((each) => each !== id);
  const { [id]: _, ...views } = get().views;
  set({ views });
  tell();
}

/** Keys and ids of inputs that the log has told of: what was sent under them is no longer pending, whatever became of it. */
const seen = new Set<string>();

export function setPending(id: string, change: (pending: Pending[]) => Pending[]): void {
  const { pending } = get();
  const isNew = ({ key, input_id }: Pending) => !seen.has(key) && !(input_id && seen.has(input_id));
  set({ pending: { ...pending, [id]: change(pending[id] ?? []).filter(isNew) } });
}

function noteSeen(events: readonly LogEvent[]): void {
  const sessions = new Set<string>();
  for (const { type, session_id, data } of events) {
    if (!type.startsWith("input.") || session_id === null) continue;
    const { key, input_id } = data as { key?: string | null; input_id?: string };
    for (const each of [key, input_id]) if (each) seen.add(each);
    sessions.add(session_id);
  }
  for (const id of sessions) if (get().pending[id]) setPending(id, (all) => all);
}

/** Follows the output of a task, from an offset or its end on. */
export function follow(task_id: string, from: number | "end"): () => void {
  outputs = { ...outputs, [task_id]: from };
  tell();
  return () => {
    const { [task_id]: _, ...rest } = outputs;
    outputs = rest;
    tell();
  };
}

function addOutput(piece: OutputPiece): void {
  const known = get().outputs[piece.task_id];
  if (known && piece.next_offset <= known.next_offset) return;
  const isNext = known !== undefined && piece.offset === known.next_offset;
  const text = ((isNext ? known.text : "") + piece.text).slice(-MOST_OUTPUT);
  const output = { text, offset: isNext ? known.offset : piece.offset, next_offset: piece.next_offset };
  if (piece.task_id in outputs) outputs = { ...outputs, [piece.task_id]: piece.next_offset };
  set({ outputs: { ...get().outputs, [piece.task_id]: output } });
}

/** The server's clock, in milliseconds. */
export function now(): number {
  return Date.now() + (get().server?.clock_offset ?? 0);
}
