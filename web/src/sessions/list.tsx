// The sessions at the side: the one that changed last first; searched by the server.
import { Archive, Search, SquarePen } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { Link, useRoute } from "wouter";
import type { Session } from "../api/types";
import { useSessions } from "../queries";
import { buttonClass } from "../ui/button";
import { Ago } from "../ui/time";
import { SessionMenu } from "./menu";
import { titleOf } from "./title";

const PAGE = 100;
const MOST = 500;

export function SessionList() {
  const [search, setSearch] = useState("");
  const [isArchive, setArchive] = useState(false);
  const wanted = useDeferredValue(search.trim());
  const [limit, setLimit] = useState(PAGE);
  const { data, isPending } = useSessions(wanted, isArchive, limit);
  const [, params] = useRoute("/sessions/:id");
  const items = data?.items ?? [];
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="space-y-2 px-3 pb-2">
        <Link to="/" className={`${buttonClass("primary")} w-full`}>
          <SquarePen className="size-4" />
          New chat
        </Link>
        <label className="flex items-center gap-2 rounded-lg border border-line bg-panel px-2.5 py-1.5 text-sm focus-within:border-accent">
          <Search className="size-4 text-muted" />
          <input
            type="search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            placeholder="Search chats"
            aria-label="Search chats"
            className="w-full bg-transparent outline-none placeholder:text-muted"
          />
        </label>
      </div>
      <nav aria-label="Chats" className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        <ul className="space-y-0.5">
          {items.map((each) => (
            <Row key={each.id} session={each} isShown={params?.id === each.id} />
          ))}
        </ul>
        {data?.next &&
          (limit < MOST ? (
            <button
              type="button"
              onClick={() => setLimit(limit + PAGE)}
              className="w-full rounded-lg py-2 text-sm text-muted hover:bg-ink/5 hover:text-ink"
            >
              More
            </button>
          ) : (
            <p className="px-3 py-2 text-xs text-muted">Older ones are found by their words.</p>
          ))}
        {!isPending && items.length === 0 && (
          <p className="px-3 py-4 text-sm text-muted">
            {wanted ? "No chat has these words." : isArchive ? "Nothing is archived." : "Your chats will stand here."}
          </p>
        )}
      </nav>
      <button
        type="button"
        aria-pressed={isArchive}
        onClick={() => setArchive(!isArchive)}
        className="flex items-center gap-2 border-t border-line px-4 py-2.5 text-sm text-muted hover:text-ink"
      >
        <Archive className="size-4" />
        {isArchive ? "Back to the chats" : "Archive"}
      </button>
    </div>
  );
}

const DOTS: Record<string, [string, string]> = {
  running: ["bg-accent animate-pulse", "works"],
  queued: ["bg-muted", "waits to begin"],
  held: ["bg-warn", "on hold"],
};

function Row({ session, isShown }: { session: Session; isShown: boolean }) {
  const dot = DOTS[session.state];
  return (
    <li className="group relative">
      <Link
        to={`/sessions/${session.id}`}
        aria-current={isShown ? "page" : undefined}
        className="block rounded-lg py-1.5 ps-2.5 pe-9 hover:bg-ink/5 aria-[current]:bg-ink/8"
      >
        <span className="flex items-center gap-2">
          {dot && <span role="img" className={`size-2 shrink-0 rounded-full ${dot[0]}`} aria-label={dot[1]} />}
          <span className={`truncate text-sm ${session.is_unread && !isShown ? "font-semibold" : ""}`}>
            {titleOf(session)}
          </span>
          {session.is_unread && !isShown && (
            <span role="img" className="size-2 shrink-0 rounded-full bg-accent" aria-label="unread" />
          )}
        </span>
        <span className="block truncate text-xs text-muted">
          {session.agent} · <Ago at={session.updated_at} />
        </span>
      </Link>
      <div className="absolute top-1.5 right-1 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 max-md:opacity-100">
        <SessionMenu session={session} />
      </div>
    </li>
  );
}
