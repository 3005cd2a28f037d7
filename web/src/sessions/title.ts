import type { Session } from "../api/types";

/** What a session is called: its title, else its first words. */
export function titleOf(session: Pick<Session, "title" | "preview">): string {
  return session.title || session.preview || "New chat";
}
