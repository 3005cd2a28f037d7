// What the page asks of the server beside the chat itself.

import type { UIMessage } from "ai";
import type { Task } from "./tasks";

export type Session = { id: string; last_event: number };

/** What stands in an answer beside text and calls. */
export type Message = UIMessage<
  { state?: "completed" | "stopped" | "failed"; error?: { message: string } },
  {
    task: Task;
    wake: { task_id: string; text: string };
    message: { text: string };
    output: { output: unknown };
    dropped: { parts: string[] };
    file: { name: string };
  }
>;

export type Opened = { session: Session; messages: Message[] };

/** A chat is a session. Its id is in the page's address, so that a reload finds it again. */
export async function open(): Promise<Opened> {
  const known = location.hash.slice(1);
  // Where the log stands is read before the messages: what happens in between is told twice rather than never.
  const session = known
    ? await ask<Session>(`/v1/sessions/${known}`)
    : await ask<Session>("/v1/sessions", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  history.replaceState(null, "", `#${session.id}`);
  return { session, messages: await messagesOf(session.id) };
}

/** The messages of the last turns, with tasks as they are now. An answer that is being made is not among them. */
export async function messagesOf(id: string): Promise<Message[]> {
  return (await ask<{ items: Message[] }>(`/api/chat/${id}/messages`)).items;
}

/** `stop()` of `useChat` would only close the connection; this ends the turn. */
export async function stop(id: string): Promise<void> {
  await ask(`/api/chat/${id}/stop`, { method: "POST" });
}

/** An error of the server says in `detail` what to do next. */
async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(path, init);
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new Error(problem.detail ?? `The server cannot be reached (${response.status}).`);
  }
  return response.json();
}
