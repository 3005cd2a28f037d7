// A session: its turns, what waits, and the composer.
import { ArrowDown } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import { DropPlace } from "../files/attached";
import { useFiles } from "../files/chosen";
import { hasEnded, isOver, type View } from "../log/view";
import { client } from "../queries";
import { openOlder, type Pending, useStore } from "../store";
import { Button, IconButton } from "../ui/button";
import { type Away, lastSeen, markSeen, whileAway } from "./away";
import { Before } from "./before";
import { Below } from "./below";
import { Chips } from "./chips";
import { Composer } from "./composer";
import { Header } from "./header";
import { useStick } from "./scroll";
import { send } from "./send";
import { Status } from "./status";
import { Stopped, useStopping } from "./stopping";
import { TurnView } from "./turn";

const NONE: readonly Pending[] = [];

export function Conversation({ id }: { id: string }) {
  const view = useStore((state) => state.views[id]);
  const link = useStore((state) => state.link.is);
  return view === undefined ? null : <Shown id={id} view={view} link={link} />;
}

function Shown({ id, view, link }: { id: string; view: View; link: string }) {
  const pending = usePending(id, view);
  const { outer, inner, onScroll, isAtEnd, toEnd } = useStick();
  const { said, stop, clear } = useStopping(id);
  const away = useAway(id, view);
  const files = useFiles();
  useRead(id, view);
  const last = view.turns.at(-1);
  const isBusy = last !== undefined && !isOver(last);
  const hasTasks = Object.values(view.tasks).some((each) => !hasEnded(each));
  return (
    <DropPlace files={files} className="h-full min-h-0">
      <div className="flex h-full min-h-0 flex-col" data-session={id} data-as-of={view.as_of} data-link={link}>
        <Header view={view} />
        <section
          tabIndex={0}
          aria-label="Conversation"
          ref={outer}
          onScroll={onScroll}
          className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]"
        >
          <div ref={inner} className="mx-auto w-full max-w-3xl space-y-6 px-4 py-6 sm:px-6">
            <Older id={id} isMore={view.next !== null} outer={outer} />
            <Before id={id} isFirst={view.next === null} />
            {view.turns.map((each) => (
              <div key={each.id} className="space-y-6">
                {away?.first === each.id && <WhileAway away={away} />}
                <TurnView session_id={id} turn={each} isLast={each === last} />
              </div>
            ))}
            <Below id={id} hasTasks={Object.keys(view.tasks).length > 0} />
            <Status view={view} />
          </div>
        </section>
        <div className="relative mx-auto w-full max-w-3xl space-y-2 px-4 pb-4 sm:px-6">
          {!isAtEnd && (
            <IconButton
              label="To the end"
              className="!absolute -top-11 left-1/2 border border-line bg-panel shadow-md"
              onClick={toEnd}
            >
              <ArrowDown className="size-4" />
            </IconButton>
          )}
          {!isBusy && <Stopped said={said} hasTasks={hasTasks && said !== null} stopAll={() => void stop(true)} />}
          <Chips session_id={id} inbox={view.inbox} pending={pending} isBegun={last?.state !== "queued"} />
          <Composer
            draft={id}
            placeholder={isBusy ? "Say something meanwhile" : `Message ${view.session.agent}`}
            isBusy={isBusy}
            onStop={() => void stop()}
            files={files}
            onSend={(text, mode, chosen) => {
              clear();
              toEnd();
              void send(id, text, mode, chosen);
              return undefined;
            }}
          />
        </div>
      </div>
    </DropPlace>
  );
}

/** What was sent and the log has not told of yet. */
function usePending(id: string, view: View): readonly Pending[] {
  const all = useStore((state) => state.pending[id]) ?? NONE;
  return useMemo(() => {
    if (all.length === 0) return NONE;
    const blocks = view.turns.slice(-3).flatMap((each) => [...each.kept, ...each.blocks]);
    const known = new Set<string | null | undefined>();
    for (const each of [...view.inbox, ...blocks]) {
      if ("key" in each) known.add(each.key);
      if ("input_id" in each) known.add(each.input_id);
    }
    return all.filter((each) => !known.has(each.key) && !(each.input_id && known.has(each.input_id)));
  }, [all, view.inbox, view.turns]);
}

/** Told once for each time that a session is opened; what was seen is kept whenever it is looked at. */
function useAway(id: string, view: View): Away | null {
  const since = useRef(lastSeen(id));
  const [away] = useState(() => whileAway(view, since.current));
  const at = view.turns.at(-1)?.ended_at ?? view.last_at;
  useEffect(() => {
    const mark = () => !document.hidden && at && markSeen(id, at);
    mark();
    document.addEventListener("visibilitychange", mark);
    return () => document.removeEventListener("visibilitychange", mark);
  }, [id, at]);
  return away;
}

/** The server is told what was read when somebody looks and nothing is being said. */
function useRead(id: string, view: View): void {
  const told = useRef(view.session.is_unread ? 0 : view.as_of);
  const last = view.turns.at(-1);
  const over = last === undefined || isOver(last) ? (last?.id ?? "none") : null;
  const position = useRef(view.as_of);
  position.current = view.as_of;
  useEffect(() => {
    const read = () => {
      if (document.hidden || over === null || told.current >= position.current) return;
      told.current = position.current;
      void api.patch(`sessions/${id}`, { read_to: position.current }).then(
        () => client.invalidateQueries({ queryKey: ["sessions"] }),
        () => undefined,
      );
    };
    read();
    document.addEventListener("visibilitychange", read);
    return () => document.removeEventListener("visibilitychange", read);
  }, [id, over]);
}

function WhileAway({ away }: { away: Away }) {
  return (
    <div className="flex items-center gap-3 text-xs text-accent" data-away>
      <span className="h-px flex-1 bg-accent/40" />
      <span>While you were away: {away.words}</span>
      <span className="h-px flex-1 bg-accent/40" />
    </div>
  );
}

function Older({ id, isMore, outer }: { id: string; isMore: boolean; outer: React.RefObject<HTMLDivElement | null> }) {
  const [refused, setRefused] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  if (!isMore) return null;
  const load = async () => {
    setBusy(true);
    const before = outer.current?.scrollHeight ?? 0;
    try {
      await openOlder(id);
      requestAnimationFrame(() => {
        if (outer.current) outer.current.scrollTop += outer.current.scrollHeight - before;
      });
    } catch (error) {
      setRefused(words(error));
    }
    setBusy(false);
  };
  return (
    <div className="text-center">
      <Button disabled={isBusy} onClick={() => void load()}>
        {isBusy ? "Looking…" : "Earlier"}
      </Button>
      {refused && <p className="text-sm text-bad">{refused}</p>}
    </div>
  );
}
