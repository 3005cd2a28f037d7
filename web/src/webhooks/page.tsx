// Where others are told of ends and needs: made with a secret that is shown once, tested, rotated, switched off and on.
import { useQuery } from "@tanstack/react-query";
import { ChevronRight, Webhook as Icon, Plus } from "lucide-react";
import { useState } from "react";
import { api, type Page } from "../api/client";
import { Problem, words } from "../api/problems";
import type { components } from "../api/schema";
import type { Webhook } from "../api/types";
import { client } from "../queries";
import { now } from "../store";
import { useAction } from "../ui/action";
import { Ask } from "../ui/ask";
import { Button } from "../ui/button";
import { Nothing, Refused } from "../ui/empty";
import { Badge, Facts, Frame, Rows, Waiting } from "../ui/frame";
import { ShownOnce } from "../ui/once";
import { Ago, span, useTick } from "../ui/time";
import { Deliveries } from "./deliveries";
import { Make } from "./make";

type New = components["schemas"]["NewWebhookAnswer"];
const again = () => client.invalidateQueries({ queryKey: ["webhooks"] });

export default function WebhooksPage() {
  const { data, error, isPending } = useQuery({
    queryKey: ["webhooks"],
    queryFn: () => api.get<Page<Webhook>>("webhooks"),
  });
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  if (error instanceof Problem && error.code === "no_encryption_key")
    return (
      <Nothing title="There are no webhooks yet" icon={<Icon className="size-6" />}>
        {error.message}
      </Nothing>
    );
  const items = data?.items ?? [];
  return (
    <Frame
      title="Webhooks"
      about="Other programs are told when work ends or needs somebody: ids, states and times, never what was said."
      actions={
        <Button kind="primary" aria-expanded={isMaking} onClick={() => setMaking(!isMaking)}>
          <Plus className="size-4" />
          New webhook
        </Button>
      }
    >
      {error && <Refused>{words(error)}</Refused>}
      {isMaking && (
        <Make
          made={(hook: New) => {
            setSecret(hook.secret);
            setMaking(false);
            void again();
          }}
        />
      )}
      {isPending && <Waiting />}
      {items.length > 0 && (
        <Rows label="Webhooks">
          {items.map((each) => (
            <Row key={each.id} hook={each} show={setSecret} />
          ))}
        </Rows>
      )}
      {data && items.length === 0 && !isMaking && (
        <Nothing title="Nobody else is told" icon={<Icon className="size-6" />}>
          Give the address of a program, and it is told when a turn or a task has ended, or needs somebody.
        </Nothing>
      )}
      <ShownOnce
        title="Its secret"
        secret={secret}
        about="Whoever receives the messages checks with it that they are yours. It is shown now and never again."
        onClose={() => setSecret(null)}
      />
    </Frame>
  );
}

function Row({ hook, show }: { hook: Webhook; show: (secret: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li data-webhook={hook.id} data-state={hook.state}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-3 px-4 py-3 text-start hover:bg-soft/60"
      >
        <span className="min-w-0 flex-1">
          <span className="flex items-center gap-2">
            <span className="truncate font-mono text-sm">{hook.url}</span>
            <Badge tone={hook.state === "active" ? "good" : "bad"}>{hook.state === "active" ? "on" : "off"}</Badge>
            {hook.is_for_all && <Badge tone="warn">all owners</Badge>}
          </span>
          <span className="block truncate text-xs text-muted">
            {hook.types?.join(", ") ?? "everything"}
            {hook.failing_since && <Failing since={hook.failing_since} />}
          </span>
        </span>
        <ChevronRight className={`size-4 shrink-0 text-muted transition-transform ${isOpen ? "rotate-90" : ""}`} />
      </button>
      {isOpen && <More hook={hook} show={show} />}
    </li>
  );
}

const A_WHILE = 60_000;

/** One message that did not arrive is no news: it is tried again. After a while it is. */
function Failing({ since }: { since: string }) {
  useTick(true, 10_000);
  const failing = now() - Date.parse(since);
  if (failing < A_WHILE) return <span> · the last message did not arrive: it is tried again</span>;
  return <span className="text-warn"> · nothing has arrived for {span(failing)}</span>;
}

function More({ hook, show }: { hook: Webhook; show: (secret: string) => void }) {
  const { isBusy, refused, run } = useAction();
  const isOn = hook.state === "active";
  const path = `webhooks/${hook.id}`;
  const sent = () => client.invalidateQueries({ queryKey: ["deliveries", hook.id] });
  return (
    <div className="space-y-4 border-t border-line bg-soft/30 px-4 py-4">
      <div className="flex flex-wrap gap-2">
        <Button disabled={isBusy || !isOn} onClick={() => void run(() => api.post(`${path}/test`).then(sent))}>
          Send a test
        </Button>
        <Button disabled={isBusy} onClick={() => void run(() => api.patch(path, { is_active: !isOn }).then(again))}>
          {isOn ? "Switch off" : "Switch on"}
        </Button>
        <Ask
          label="New secret"
          title="Make a new secret?"
          about="For a while messages are signed with both, so that you can change it where they are received."
          yes="Make it"
          run={async () => {
            show((await api.post<New>(`${path}/rotate`)).secret);
            await again();
          }}
        />
        <Ask
          label="Delete"
          title="Delete this webhook?"
          about="It is told nothing from now on, and the log of what it was told goes with it."
          yes="Delete"
          run={() => api.delete(path).then(again)}
        />
      </div>
      {refused && <Refused>{refused}</Refused>}
      <Facts
        rows={[
          ["Address", hook.url],
          ["Why it is off", hook.off_reason],
          ["Made", <Ago key="made" at={hook.created_at} />],
          [
            "Id",
            <span key="id" className="font-mono text-xs">
              {hook.id}
            </span>,
          ],
        ]}
      />
      <Deliveries id={hook.id} />
    </div>
  );
}
