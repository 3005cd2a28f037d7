// How a turn ended, if not simply with its answer; a typed output; and what can be done with it now.
import { RefreshCw, RotateCcw } from "lucide-react";
import { useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { Turn } from "../log/view";
import { isOver } from "../log/view";
import { Button, IconButton } from "../ui/button";
import { CopyButton } from "../ui/copy";
import { Refused } from "../ui/empty";
import { Elapsed } from "../ui/time";
import { OutputCard } from "./output-card";

type Props = { session_id: string; turn: Turn; isLast: boolean };

export function TurnEnd({ session_id, turn, isLast }: Props) {
  const [refused, setRefused] = useState<string | null>(null);
  if (!isOver(turn)) return null;
  const ask = async (what: "retry" | "regenerate") => {
    setRefused(null);
    try {
      await api.post(`sessions/${session_id}/${what}`);
    } catch (error) {
      setRefused(words(error));
    }
  };
  const said = saidIn(turn);
  return (
    <>
      <OutputCard turn={turn} />
      {turn.state === "failed" && (
        <div role="alert" className="rounded-xl bg-bad-soft px-4 py-3 text-sm" data-failed={turn.error?.kind}>
          <p className="font-medium text-bad">{turn.error?.message ?? "The turn failed."}</p>
          <p className="text-xs text-muted">
            {turn.error?.kind}
            {turn.error?.reference && ` · reference ${turn.error.reference}`}
          </p>
        </div>
      )}
      {turn.state === "stopped" && <p className="text-sm text-muted">Stopped. What was said and done is kept.</p>}
      {refused && <Refused>{refused}</Refused>}
      <footer className="flex items-center gap-1 text-xs text-muted" data-end>
        {said && <CopyButton text={said} label="Copy the answer" />}
        {isLast && turn.state === "completed" && (
          <IconButton label="Answer once more" onClick={() => void ask("regenerate")}>
            <RefreshCw className="size-4" />
          </IconButton>
        )}
        {isLast && turn.state !== "completed" && (
          <Button onClick={() => void ask("retry")}>
            <RotateCcw className="size-4" />
            Go on
          </Button>
        )}
        <span className="ps-1">
          <Elapsed from={turn.started_at} to={turn.ended_at} />
          {turn.model && ` · ${turn.model}`}
          {turn.usage && turn.usage.output_tokens > 0 && ` · ${tokens(turn)} tokens`}
        </span>
      </footer>
    </>
  );
}

function saidIn(turn: Turn): string {
  return turn.blocks.flatMap((each) => (each.type === "text" ? [each.text] : [])).join("\n\n");
}

function tokens({ usage }: Turn): string {
  return ((usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0)).toLocaleString();
}
