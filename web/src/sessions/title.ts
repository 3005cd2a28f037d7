import type { Session } from "../api/types";
import type { View } from "../log/view";

/** What a session is called: its title, else its first words. */
export function titleOf(session: Pick<Session, "title" | "preview">): string {
  return session.title || session.preview || "New chat";
}

/** Of one that was opened before its first message was heard: how that begins. */
export function shownTitle(view: View): string {
  const { session, turns, inbox } = view;
  if (session.title || session.preview || view.next !== null) return titleOf(session);
  const blocks = [...(turns[0]?.kept ?? []), ...(turns[0]?.blocks ?? []), ...inbox];
  const first = blocks.find((each) => "text" in each && each.text);
  const text = first && "text" in first ? first.text : "";
  return text.length > 80 ? `${text.slice(0, 79)}…` : text || titleOf(session);
}
