import { useState } from "react";
import { Button } from "../../ui/button";
import { Refused } from "../../ui/empty";
import type { Act, Request } from "../request";

type Props = { task_id: string; request: Request; act: Act };

/** Approved as it is or with other arguments, or refused with a reason that the model is told. */
export function Approve({ task_id, request, act }: Props) {
  const before = request.args === undefined ? "" : JSON.stringify(request.args, null, 2);
  const [edited, setArgs] = useState<string | null>(null);
  const args = edited ?? before;
  const [reason, setReason] = useState("");
  const [isRefusing, setRefusing] = useState(false);
  const [wrong, setWrong] = useState(false);
  const [always, setAlways] = useState(false);
  const approve = () => {
    if (args === before) return void act(`tasks/${task_id}/approve`, { always });
    try {
      void act(`tasks/${task_id}/approve`, { args: JSON.parse(args), always });
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <>
      {before && (
        <textarea
          value={args}
          onChange={(event) => setArgs(event.target.value)}
          rows={Math.min(10, args.split("\n").length)}
          spellCheck={false}
          aria-label="Arguments of the call"
          className="w-full rounded-lg border border-line bg-panel p-2 font-mono text-xs"
        />
      )}
      {wrong && <Refused>These arguments are not JSON.</Refused>}
      {isRefusing && (
        <input
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          placeholder="Why not (the model is told)"
          aria-label="Why not"
          className="w-full rounded-lg border border-line bg-panel px-3 py-1.5 placeholder:text-muted"
        />
      )}
      {!isRefusing && (
        <label className="flex items-center gap-2 text-xs text-muted">
          <input type="checkbox" checked={always} onChange={(event) => setAlways(event.target.checked)} />
          Do not ask again for this tool in this chat
        </label>
      )}
      <div className="flex flex-wrap gap-2">
        {!isRefusing && (
          <Button kind="primary" type="button" onClick={approve}>
            {args === before ? "Approve" : "Approve with these"}
          </Button>
        )}
        {isRefusing && <Button onClick={() => setRefusing(false)}>Back</Button>}
        <Button
          kind="danger"
          onClick={() => (isRefusing ? void act(`tasks/${task_id}/refuse`, { reason }) : setRefusing(true))}
        >
          Refuse
        </Button>
      </div>
    </>
  );
}
