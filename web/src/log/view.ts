// A session as it is shown: the server's own fold, and what the events after it make of it.
import type { Session, TaskSnapshot, Verdict } from "../api/types";

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type Preview = { $preview: string; bytes: number; file_id?: string | null; href: string };
export type Cut = { bytes: number; href: string };
export type ShownFile = { id?: string | null; name?: string | null; media_type: string; bytes: number };
export type Usage = {
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_microdollars: number | null;
};

export type MessageBlock = {
  type: "message";
  input_id: string;
  key?: string | null;
  text: string;
  cut?: Cut | null;
  files: ShownFile[];
  mode?: string | null;
  by?: string | null;
  at: string;
};
export type WakeBlock = {
  type: "wake";
  input_id: string;
  task_ids: string[];
  text: string;
  cut?: Cut | null;
  at: string;
};
export type NoteBlock = {
  type: "note";
  kind: string;
  text: string;
  cut?: Cut | null;
  input_id?: string | null;
  task_ids: string[];
  details?: { [name: string]: unknown } | null;
  at: string;
};
export type SaidBlock = {
  type: "text" | "reasoning";
  part: string;
  text: string;
  cut?: Cut | null;
  is_open: boolean;
};
export type FileBlock = { type: "file"; part: string; kind: string; file?: ShownFile | null; is_open: boolean };
export type CallBlock = {
  type: "call";
  call_id: string;
  part?: string | null;
  tool: string;
  args?: unknown;
  narration?: string | null;
  state: "asked" | "running" | "waiting" | "ended";
  outcome?: string | null;
  is_unknown?: boolean;
  result?: unknown;
  files: ShownFile[];
  artifacts: { [name: string]: unknown }[];
  task_id?: string | null;
  progress?: { [name: string]: unknown } | null;
  reason?: string | null;
  settled?: { verdict: Verdict; by?: string | null; note: string; at?: string | null } | null;
  started_at?: string | null;
  ended_at?: string | null;
};
export type Block = MessageBlock | WakeBlock | NoteBlock | SaidBlock | FileBlock | CallBlock;

export type TurnError = { kind: string; message: string; is_retryable?: boolean; reference?: string | null };
export type Turn = {
  id: string;
  origin: string;
  state: "queued" | "running" | "completed" | "failed" | "stopped";
  attempt: number;
  model?: string | null;
  place?: number | null;
  until?: string | null;
  regenerates?: string | null;
  replaced_by?: string | null;
  queued_at?: string | null;
  started_at?: string | null;
  ended_at?: string | null;
  kept: Block[];
  blocks: Block[];
  left_out: number;
  text: string;
  output?: unknown;
  output_type?: string | null;
  usage?: Usage | null;
  error?: TurnError | null;
  stop_reason?: string | null;
};
export type Waiting = {
  input_id: string;
  kind: string;
  mode?: string | null;
  text: string;
  cut?: Cut | null;
  key?: string | null;
  task_ids: string[];
  files: ShownFile[];
  by?: string | null;
  place?: number | null;
  created_at: string;
};
/** What the server answers. */
export type SessionView = {
  as_of: number;
  feed: string;
  session: Session;
  turns: Turn[];
  next: string | null;
  inbox: Waiting[];
  tasks: TaskSnapshot[];
};
/** The same while it is shown: tasks by their id, and when the last event came by the server's clock. */
export type View = Omit<SessionView, "tasks"> & {
  tasks: Record<string, TaskSnapshot>;
  last_at: string | null;
  is_deleted: boolean;
};

export function opened(view: SessionView): View {
  const tasks = Object.fromEntries(view.tasks.map((each) => [each.id, each]));
  return { ...view, tasks, last_at: null, is_deleted: false };
}

export function isOver(turn: Turn): boolean {
  return turn.state !== "queued" && turn.state !== "running";
}

export function hasEnded(task: TaskSnapshot): boolean {
  return task.state === "succeeded" || task.state === "failed" || task.state === "canceled";
}

export function isPreview(value: unknown): value is Preview {
  return typeof value === "object" && value !== null && "$preview" in value;
}
