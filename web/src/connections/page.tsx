// Credentials of providers: set without ever being shown, listed, removed.
import { useQuery } from "@tanstack/react-query";
import { Plug } from "lucide-react";
import { useState } from "react";
import { api, type Page } from "../api/client";
import { words } from "../api/problems";
import type { Connection } from "../api/types";
import { client, useMe } from "../queries";
import { useAction } from "../ui/action";
import { Ask } from "../ui/ask";
import { Button } from "../ui/button";
import { Nothing, Refused } from "../ui/empty";
import { Field } from "../ui/field";
import { Badge, Card, Frame, Rows, Waiting } from "../ui/frame";
import { Ago } from "../ui/time";

const again = () => client.invalidateQueries({ queryKey: ["connections"] });

export default function ConnectionsPage() {
  const me = useMe().data;
  const isOn = me?.features.connections ?? false;
  const { data, error, isPending } = useQuery({
    queryKey: ["connections"],
    queryFn: () => api.get<Page<Connection>>("connections"),
    enabled: isOn,
  });
  if (me && !isOn)
    return (
      <Nothing title="Credentials cannot be kept yet" icon={<Plug className="size-6" />}>
        This server has no encryption key. Whoever runs it sets{" "}
        <code className="font-mono text-ink">OUTLAST_ENCRYPTION_KEYS</code> and starts it again;{" "}
        <code className="font-mono text-ink">outlast keys generate-encryption</code> makes one.
      </Nothing>
    );
  const items = data?.items ?? [];
  return (
    <Frame
      title="Connections"
      about="Keys and tokens that your tools use for you. They are kept encrypted, and never shown: not here, not to a model."
    >
      <Keep known={items.map((each) => each.provider)} />
      {error && <Refused>{words(error)}</Refused>}
      {isPending && <Waiting />}
      {items.length > 0 && (
        <Rows label="Connections">
          {items.map((each) => (
            <Row key={each.provider} of={each} />
          ))}
        </Rows>
      )}
      {data && items.length === 0 && (
        <p className="py-4 text-center text-sm text-muted">
          No connections yet. When a tool needs one, its chat asks you for it.
        </p>
      )}
    </Frame>
  );
}

function Row({ of: connection }: { of: Connection }) {
  const { provider } = connection;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3 text-sm" data-connection={provider}>
      <div className="min-w-0 flex-1">
        <p className="flex items-center gap-2 font-medium">
          {provider}
          {connection.state === "unreadable" && <Badge tone="bad">set it again: no key of the server opens it</Badge>}
        </p>
        <p className="text-xs text-muted">
          set <Ago at={connection.updated_at} />
          {connection.used_at ? (
            <>
              {" "}
              · used <Ago at={connection.used_at} />
            </>
          ) : (
            " · never used"
          )}
        </p>
      </div>
      <Ask
        label="Remove"
        title={`Remove the connection to ${provider}?`}
        about="Tools that need it will ask you for it again."
        yes="Remove"
        run={() => api.delete(`connections/${encodeURIComponent(provider)}`).then(again)}
      />
    </li>
  );
}

function Keep({ known }: { known: readonly string[] }) {
  const [provider, setProvider] = useState("");
  const [value, setValue] = useState("");
  const { isBusy, refused, run } = useAction();
  const keep = () =>
    run(async () => {
      await api.put(`connections/${encodeURIComponent(provider.trim())}`, { value });
      setValue("");
      setProvider("");
      await again();
    });
  return (
    <Card title="Connect a provider">
      <form
        className="grid items-start gap-4 sm:grid-cols-[1fr_1fr_auto]"
        onSubmit={(event) => {
          event.preventDefault();
          void keep();
        }}
      >
        <Field
          label="Provider"
          required
          value={provider}
          onChange={(event) => setProvider(event.target.value)}
          placeholder="github"
        />
        <Field
          label="Key or token"
          type="password"
          autoComplete="off"
          required
          minLength={6}
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
        <Button kind="primary" type="submit" disabled={isBusy} className="sm:mt-6">
          {known.includes(provider.trim()) ? "Replace" : "Keep"}
        </Button>
      </form>
      {refused && (
        <div className="mt-3">
          <Refused>{refused}</Refused>
        </div>
      )}
    </Card>
  );
}
