// Nobody knows whether it took effect. A person who does can say so; the model is told.
import { useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { TaskSnapshot, Verdict } from "../api/types";
import type { CallBlock } from "../log/view";
import { unknown } from "../tasks/live";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";

export function SettleCall({ session_id, block }: { session_id: string; block: CallBlock }) {
  return <Settle path={`sessions/${session_id}/calls/${encodeURIComponent(block.call_id)}/settle`} />;
}

type Ended = Pick<TaskSnapshot, "id" | "error" | "settled"> & { may_run_again?: boolean };

export function SettleTask({ task }: { task: Ended }) {
  return <Settle path={`tasks/${task.id}/settle`} what={unknown(task)} />;
}

const VERDICTS: readonly [Verdict, string][] = [
  ["worked", "It worked"],
  ["failed", "It did not"],
  ["try_again", "Try it again"],
];

function Settle({ path, what = null }: { path: string; what?: string | null }) {
  const [note, setNote] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const say = async (verdict: Verdict) => {
    setBusy(true);
    setRefused(null);
    try {
      await api.post(path, { verdict, note });
    } catch (error) {
      setRefused(words(error));
      setBusy(false);
    }
  };
  return (
    <div className="space-y-2 rounded-xl bg-warn-soft p-3 text-sm">
      <p className="text-warn">
        It {what ?? "was interrupted: it may or may not have taken effect"}. Look, and say what became of it.
      </p>
      <input
        value={note}
        onChange={(event) => setNote(event.target.value)}
        maxLength={2_000}
        placeholder="What you found (may be left out)"
        aria-label="What you found"
        className="w-full rounded-lg border border-line bg-panel px-3 py-1.5 placeholder:text-muted"
      />
      {refused && <Refused>{refused}</Refused>}
      <div className="flex flex-wrap gap-2">
        {VERDICTS.map(([verdict, label]) => (
          <Button key={verdict} disabled={isBusy} onClick={() => void say(verdict)}>
            {label}
          </Button>
        ))}
      </div>
    </div>
  );
}
