// Keys to the API: made and shown once, listed, revoked. For admins.
import { useQuery } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { api, type Page } from "../api/client";
import { Problem, words } from "../api/problems";
import type { components } from "../api/schema";
import type { Key } from "../api/types";
import { client, useMe } from "../queries";
import { useAction } from "../ui/action";
import { Ask } from "../ui/ask";
import { Button } from "../ui/button";
import { Nothing, Refused } from "../ui/empty";
import { Choice, Field } from "../ui/field";
import { Badge, Card, Frame, Rows, Waiting } from "../ui/frame";
import { ShownOnce } from "../ui/once";
import { Ago } from "../ui/time";

type NewKey = components["schemas"]["NewKeyAnswer"];
const again = () => client.invalidateQueries({ queryKey: ["keys"] });

export default function KeysPage() {
  const { data, error, isPending } = useQuery({
    queryKey: ["keys"],
    queryFn: () => api.get<Page<Key>>("keys", { limit: 200 }),
  });
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  if (error instanceof Problem && error.status === 403)
    return (
      <Nothing title="Keys are for admins" icon={<KeyRound className="size-6" />}>
        Ask whoever runs this server for one.
      </Nothing>
    );
  const items = data?.items ?? [];
  return (
    <Frame
      title="Keys"
      about="Each opens the API for one owner. A key is shown once, when it is made."
      actions={
        <Button kind="primary" onClick={() => setMaking(!isMaking)} aria-expanded={isMaking}>
          <Plus className="size-4" />
          New key
        </Button>
      }
    >
      {error && <Refused>{words(error)}</Refused>}
      {isMaking && (
        <Make
          made={(key) => {
            setSecret(key.key);
            setMaking(false);
          }}
        />
      )}
      {isPending && <Waiting />}
      {items.length > 0 && (
        <Rows label="Keys">
          {items.map((each) => (
            <Row key={each.id} of={each} />
          ))}
        </Rows>
      )}
      {data && items.length === 0 && (
        <Nothing title="No keys yet" icon={<KeyRound className="size-6" />}>
          Programs need one to reach this server. You yourself are signed in without.
        </Nothing>
      )}
      <ShownOnce
        title="The new key"
        secret={secret}
        about="It is shown now and never again. Keep it where your program finds it."
        onClose={() => setSecret(null)}
      />
    </Frame>
  );
}

function Row({ of: key }: { of: Key }) {
  const isOver = key.revoked_at !== null || (key.expires_at !== null && Date.parse(key.expires_at) < Date.now());
  return (
    <li
      className={`flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3 text-sm ${isOver ? "text-muted" : ""}`}
      data-key={key.id}
    >
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-2">
          <span className={isOver ? "line-through" : "font-medium"}>{key.name}</span>
          {key.role === "admin" && <Badge tone="warn">admin</Badge>}
          {key.scope !== "write" && <Badge>{key.scope}</Badge>}
          {key.revoked_at && <Badge>revoked</Badge>}
        </p>
        <p className="text-xs text-muted">
          for {key.owner_id} · made <Ago at={key.created_at} />
          {key.used_at ? (
            <>
              {" "}
              · used <Ago at={key.used_at} />
            </>
          ) : (
            " · never used"
          )}
          {key.expires_at && ` · until ${new Date(key.expires_at).toLocaleDateString()}`}
        </p>
      </div>
      {!isOver && (
        <Ask
          label="Revoke"
          title={`Revoke “${key.name}”?`}
          about="Whoever uses it is refused from now on, also the browsers that signed in with it. This cannot be undone."
          yes="Revoke"
          run={() => api.delete(`keys/${key.id}`).then(again)}
        />
      )}
    </li>
  );
}

function Make({ made }: { made: (key: NewKey) => void }) {
  const me = useMe().data;
  const [name, setName] = useState("");
  const [typed, setOwner] = useState<string | null>(null);
  const owner = typed ?? me?.owner_id ?? "";
  const [role, setRole] = useState("user");
  const [scope, setScope] = useState("write");
  const [days, setDays] = useState("");
  const { isBusy, refused, run } = useAction();
  const make = () =>
    run(async () => {
      const expires_in_days = days === "" ? null : Number(days);
      const key = await api.post<NewKey>("keys", { name, owner_id: owner, role, scope, expires_in_days });
      await again();
      made(key);
    });
  return (
    <Card title="A new key">
      <form
        className="grid gap-4 sm:grid-cols-2"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <Field
          label="Name"
          required
          value={name}
          onChange={(event) => setName(event.target.value)}
          placeholder="nightly report"
        />
        <Field
          label="Owner"
          required
          value={owner}
          onChange={(event) => setOwner(event.target.value)}
          hint="Whose chats it opens."
        />
        <Choice
          label="May"
          value={scope}
          onChange={(event) => setScope(event.target.value)}
          choices={[
            ["write", "do everything"],
            ["propose", "propose, but not approve"],
            ["read", "only look"],
          ]}
        />
        <Choice
          label="Role"
          value={role}
          onChange={(event) => setRole(event.target.value)}
          choices={[
            ["user", "user"],
            ["admin", "admin of the server"],
          ]}
        />
        <Field
          label="Ends after days"
          type="number"
          min={1}
          value={days}
          onChange={(event) => setDays(event.target.value)}
          placeholder="never"
        />
        <div className="flex items-end justify-end">
          <Button kind="primary" type="submit" disabled={isBusy}>
            Make the key
          </Button>
        </div>
        {refused && <Refused>{refused}</Refused>}
      </form>
    </Card>
  );
}
