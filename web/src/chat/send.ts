// What a person asks of a session. A message is shown at once, and stands as sent when its key comes with the log.
import { api, newKey } from "../api/client";
import { Problem, words } from "../api/problems";
import type { Accepted, Session, WhenBusy } from "../api/types";
import { asked, type Chosen, sendFiles } from "../files/chosen";
import { type Pending, setPending } from "../store";

export async function send(id: string, text: string, mode: WhenBusy, files: readonly Chosen[] = []): Promise<void> {
  const said = text || files.map(({ name }) => name).join(", ");
  await deliver(id, { key: newKey(), text: said, mode, files, error: null });
}

/** The same message under the same key: however often it is sent, it is said once. */
export async function sendAgain(id: string, pending: Pending): Promise<void> {
  await deliver(id, { ...pending, error: null });
}

async function deliver(id: string, message: Pending): Promise<void> {
  const { key, text, mode, files } = message;
  const change = (to: (before: Pending) => Partial<Pending>) =>
    setPending(id, (all) => all.map((each) => (each.key === key ? { ...each, ...to(each) } : each)));
  setPending(id, (all) => [...all.filter((each) => each.key !== key), message]);
  try {
    const ids = await sendFiles(id, files, (sent) =>
      change((before) => ({ files: before.files.map((each) => (each.key === sent.key ? sent : each)) })),
    );
    const body = { text, when_busy: mode, files: asked(ids) };
    const { input_id } = await api.post<Accepted>(`sessions/${id}/messages`, body, key);
    change(() => ({ input_id }));
  } catch (error) {
    change(() => ({ error: words(error) }));
  }
}

export function drop(id: string, key: string): void {
  setPending(id, (all) => all.filter((each) => each.key !== key));
}

type Stored = { position: number; turn_id: string | null };
type Messages = { items: Stored[]; next: string | null };

/** A new session with what was there before this turn; where nothing was, an empty one with the same agent. */
export async function forkBefore(session: Session, turn_id: string): Promise<Session> {
  const at = await lastBefore(session.id, turn_id);
  if (at === null) return await api.post<Session>("sessions", { agent: session.agent });
  return await api.post<Session>(`sessions/${session.id}/fork`, { at });
}

async function lastBefore(id: string, turn_id: string): Promise<number | null> {
  let last: number | null = null;
  for (let after: string | undefined = undefined, isMore = true; isMore; ) {
    const page: Messages = await api.get<Messages>(`sessions/${id}/messages`, { limit: 100, after });
    for (const { position, turn_id: of } of page.items) {
      if (of === turn_id) return last;
      last = position;
    }
    after = page.next ?? undefined;
    isMore = page.next !== null;
  }
  throw new Problem(409, "unknown", "This message is not in the history yet: wait until it is answered.");
}
