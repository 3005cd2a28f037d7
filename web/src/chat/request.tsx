// What a task asks a person for: an approval, an answer, a connection. Answered in place; the first answer counts.
import { useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { TaskSnapshot } from "../api/types";
import { Refused } from "../ui/empty";
import { Answer } from "./requests/answer";
import { Approve } from "./requests/approve";
import { Connect } from "./requests/connect";

export type Request = {
  id: string;
  kind: "approval" | "question" | "connection";
  prompt: string;
  schema?: Record<string, unknown> | null;
  args?: unknown;
  url?: string | null;
  provider?: string | null;
  deadline_at?: string | null;
};
export type Act = (path: string, body: unknown) => Promise<void>;

export function RequestCard({ task }: { task: Pick<TaskSnapshot, "id" | "title" | "tool"> & { request?: unknown } }) {
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const request = task.request as Request | null | undefined;
  if (request == null) return null;
  const act: Act = async (path, body) => {
    setBusy(true);
    setRefused(null);
    try {
      await api.post(path, body);
    } catch (error) {
      setRefused(words(error));
    }
    setBusy(false);
  };
  const props = { task_id: task.id, request, isBusy, act };
  return (
    <fieldset className="space-y-3 rounded-xl bg-warn-soft p-3" data-request={request.id} disabled={isBusy}>
      <legend className="sr-only">{request.kind}</legend>
      <p className="font-medium whitespace-pre-wrap">{request.prompt}</p>
      {request.kind === "approval" && <Approve {...props} />}
      {request.kind === "question" && <Answer {...props} />}
      {request.kind === "connection" && <Connect {...props} refuse={setRefused} />}
      {request.deadline_at && (
        <p className="text-xs text-muted">Until {new Date(request.deadline_at).toLocaleString()}.</p>
      )}
      {refused && <Refused>{refused}</Refused>}
    </fieldset>
  );
}
