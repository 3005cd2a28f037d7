// Under the last turn: that something works, what it waits for after some seconds of silence, and a hold.
import { useQuery } from "@tanstack/react-query";
import { Pause, Play } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { View } from "../log/view";
import { isOver } from "../log/view";
import { useMe } from "../queries";
import { now } from "../store";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";
import { span, useTick } from "../ui/time";
import { SILENCE, waitsFor } from "./waits";

export function Status({ view }: { view: View }) {
  const turn = view.turns.at(-1);
  const isBusy = turn !== undefined && !isOver(turn);
  const began = useRef(now());
  // biome-ignore lint/correctness/useExhaustiveDependencies: silence is counted from the last event on
  useEffect(() => {
    began.current = now();
  }, [view.as_of]);
  useTick(isBusy);
  const last = view.last_at ?? turn?.started_at ?? turn?.queued_at;
  const isPaused = usePaused(turn?.state === "queued");
  const silent = now() - Math.max(last ? Date.parse(last) : 0, view.last_at ? 0 : began.current - SILENCE);
  return (
    <div role="status" aria-live="polite" className="min-h-6 text-sm text-muted">
      {isBusy && silent >= SILENCE ? (
        <p data-waits>
          {waitsFor(view, isPaused)} <span className="tabular-nums">({span(Math.floor(silent / 1_000) * 1_000)})</span>
        </p>
      ) : isBusy ? (
        <span className="inline-flex gap-1 py-2" role="img" aria-label="The agent works">
          <Dot />
          <Dot />
          <Dot />
        </span>
      ) : null}
      {view.session.is_held && <Held id={view.session.id} waiting={view.inbox.length} />}
    </div>
  );
}

/** Only who may pause the server may ask whether it is. */
function usePaused(isAwaited: boolean): boolean {
  const { data: me } = useMe();
  const { data } = useQuery({
    queryKey: ["pause"],
    queryFn: () => api.get<{ is_paused: boolean }>("pause"),
    enabled: isAwaited && me?.role === "admin",
    refetchInterval: 5_000,
  });
  return isAwaited && data?.is_paused === true;
}

function Dot() {
  return <span className="size-1.5 animate-pulse rounded-full bg-muted" />;
}

function Held({ id, waiting }: { id: string; waiting: number }) {
  const [refused, setRefused] = useState<string | null>(null);
  const resume = () => api.post(`sessions/${id}/resume`).catch((error: unknown) => setRefused(words(error)));
  return (
    <div className="flex flex-wrap items-center gap-3 rounded-xl bg-warn-soft px-3 py-2 text-warn" data-held>
      <Pause className="size-4" />
      <span className="flex-1">
        On hold: nothing starts by itself until you write{waiting > 0 ? " or let it go on." : " or end the hold."}
        {waiting > 0 && ` ${waiting === 1 ? "One message waits" : `${waiting} messages wait`}.`}
      </span>
      <Button onClick={() => void resume()}>
        <Play className="size-4" />
        {waiting > 0 ? "Go on" : "End the hold"}
      </Button>
      {refused && <Refused>{refused}</Refused>}
    </div>
  );
}
