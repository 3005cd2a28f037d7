import { useState } from "react";
import { Button } from "../../ui/button";
import { Refused } from "../../ui/empty";
import type { Act, Request } from "../request";

type Props = { task_id: string; request: Request; act: Act };

/** A choice as buttons, a yes or no, words, or JSON for what is more than that. */
export function Answer({ task_id, request, act }: Props) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const reply = (value: unknown) => void act(`tasks/${task_id}/reply`, { value, request_id: request.id });
  const { type, enum: choices } = (request.schema ?? {}) as { type?: string; enum?: unknown[] };
  const offered = choices ?? (type === "boolean" ? [true, false] : null);
  if (offered !== null)
    return (
      <div className="flex flex-wrap gap-2">
        {offered.map((each) => (
          <Button key={String(each)} onClick={() => reply(each)}>
            {each === true ? "Yes" : each === false ? "No" : String(each)}
          </Button>
        ))}
      </div>
    );
  const submit = () => {
    const value = read(text, type);
    setWrong(value === undefined ? `An answer of the type ${type} is asked for, as JSON.` : null);
    if (value !== undefined) reply(value);
  };
  return (
    <>
      <textarea
        value={text}
        rows={type === "object" || type === "array" ? 4 : 2}
        onChange={(event) => setText(event.target.value)}
        aria-label="Your answer"
        placeholder={type === "object" || type === "array" ? "JSON" : "Your answer"}
        className="w-full rounded-lg border border-line bg-panel px-3 py-2 placeholder:text-muted"
      />
      {request.schema && type !== "string" && (
        <details className="text-xs text-muted">
          <summary>What an answer must look like</summary>
          <pre className="overflow-auto font-mono">{JSON.stringify(request.schema, null, 2)}</pre>
        </details>
      )}
      {wrong && <Refused>{wrong}</Refused>}
      <Button kind="primary" disabled={!text.trim()} onClick={submit}>
        Answer
      </Button>
    </>
  );
}

function read(text: string, type: string | undefined): unknown {
  if (type === undefined || type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
