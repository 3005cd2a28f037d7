import { useState } from "react";
import { api } from "../api/client";
import type { components } from "../api/schema";
import { useMe } from "../queries";
import { useAction } from "../ui/action";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";
import { Field } from "../ui/field";
import { Card } from "../ui/frame";

type New = components["schemas"]["NewWebhookAnswer"];
type Kind = NonNullable<components["schemas"]["WebhookBody"]["types"]>[number];

const KINDS: readonly [Kind, string][] = [
  ["turn.completed", "a turn is completed"],
  ["turn.failed", "a turn failed"],
  ["turn.stopped", "a turn was stopped"],
  ["task.ended", "a task has ended"],
  ["request.opened", "something needs a person"],
  ["session.flagged", "a chat is held back"],
];

export function Make({ made }: { made: (hook: New) => void }) {
  const me = useMe().data;
  const [url, setUrl] = useState("");
  const [types, setTypes] = useState<readonly Kind[]>(KINDS.map(([kind]) => kind));
  const [isForAll, setForAll] = useState(false);
  const { isBusy, refused, run } = useAction();
  const make = () =>
    run(async () => {
      const chosen = types.length === KINDS.length ? null : types;
      made(await api.post<New>("webhooks", { url, types: chosen, is_for_all: isForAll }));
    });
  const turn = (kind: Kind) =>
    setTypes(types.includes(kind) ? types.filter((each) => each !== kind) : [...types, kind]);
  return (
    <Card title="A new webhook">
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <Field
          label="Address"
          type="url"
          required
          value={url}
          placeholder="https://example.com/outlast"
          onChange={(event) => setUrl(event.target.value)}
          hint="Messages are sent there with POST. Redirects are not followed."
        />
        <fieldset>
          <legend className="mb-1.5 text-sm font-medium">Told when</legend>
          <div className="grid gap-1 sm:grid-cols-2">
            {KINDS.map(([kind, said]) => (
              <label key={kind} className="flex items-center gap-2 text-sm">
                <input
                  type="checkbox"
                  className="size-4 accent-(--accent)"
                  checked={types.includes(kind)}
                  onChange={() => turn(kind)}
                />
                {said}
              </label>
            ))}
          </div>
        </fieldset>
        {me?.role === "admin" && (
          <label className="flex items-center gap-2 text-sm">
            <input
              type="checkbox"
              className="size-4 accent-(--accent)"
              checked={isForAll}
              onChange={() => setForAll(!isForAll)}
            />
            of all owners of this server
          </label>
        )}
        {refused && <Refused>{refused}</Refused>}
        <div className="flex justify-end">
          <Button kind="primary" type="submit" disabled={isBusy || types.length === 0}>
            Make the webhook
          </Button>
        </div>
      </form>
    </Card>
  );
}
