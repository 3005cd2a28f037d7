// What was sent to a webhook: each message with its tries; sent again when asked.
import { useQuery } from "@tanstack/react-query";
import { api, type Page } from "../api/client";
import { words } from "../api/problems";
import type { Delivery } from "../api/types";
import { client } from "../queries";
import { useAction } from "../ui/action";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";
import { Badge, type Tone } from "../ui/frame";
import { Ago } from "../ui/time";

const TONES: Record<Delivery["state"], Tone> = { pending: "warn", delivered: "good", failed: "bad" };
const SAID: Record<Delivery["state"], string> = { pending: "on its way", delivered: "arrived", failed: "given up" };

export function Deliveries({ id }: { id: string }) {
  const { data, error } = useQuery({
    queryKey: ["deliveries", id],
    queryFn: () => api.get<Page<Delivery>>(`webhooks/${id}/deliveries`, { limit: 50 }),
    // No event tells of them: it is looked at again while something is on its way.
    refetchInterval: (query) => (query.state.data?.items.some((each) => each.state === "pending") ? 2_000 : 15_000),
  });
  if (error) return <Refused>{words(error)}</Refused>;
  if (!data) return null;
  return (
    <section aria-label="What was sent">
      <h3 className="mb-1.5 text-xs font-medium text-muted">What was sent</h3>
      {data.items.length === 0 && (
        <p className="text-sm text-muted">Nothing yet. Send a test to see whether it arrives.</p>
      )}
      <ul className="space-y-1">
        {data.items.map((each) => (
          <One key={each.id} hook_id={id} delivery={each} />
        ))}
      </ul>
    </section>
  );
}

function One({ hook_id, delivery }: { hook_id: string; delivery: Delivery }) {
  const { isBusy, refused, run } = useAction();
  const send = () =>
    run(async () => {
      await api.post(`webhooks/${hook_id}/deliveries/${delivery.id}/redeliver`);
      await client.invalidateQueries({ queryKey: ["deliveries", hook_id] });
    });
  return (
    <li className="rounded-xl border border-line bg-panel px-3 py-2 text-sm" data-delivery={delivery.state}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="font-mono text-xs">{delivery.type}</span>
        <Badge tone={TONES[delivery.state]}>
          {delivery.state === "pending" && delivery.attempts > 0 ? "is tried again" : SAID[delivery.state]}
        </Badge>
        {delivery.status !== null && <span className="text-xs text-muted">answered {delivery.status}</span>}
        <span className="ms-auto text-xs text-muted">
          <Ago at={delivery.at} />
        </span>
        {delivery.state !== "pending" && (
          <Button kind="quiet" className="!px-2 !py-0.5 !text-xs" disabled={isBusy} onClick={() => void send()}>
            Send again
          </Button>
        )}
      </div>
      {delivery.error && <p className="text-xs text-bad [overflow-wrap:anywhere]">{delivery.error}</p>}
      {delivery.log.length > 0 && (
        <details className="text-xs text-muted">
          <summary>{delivery.attempts === 1 ? "One try" : `${delivery.attempts} tries`}</summary>
          <ul className="mt-1 space-y-0.5 tabular-nums">
            {delivery.log.map((each, index) => (
              <li key={index} className="[overflow-wrap:anywhere]">
                {new Date(each.at).toLocaleTimeString()} · {each.status ?? "no answer"} · {each.milliseconds} ms
                {each.error && ` · ${each.error}`}
              </li>
            ))}
          </ul>
        </details>
      )}
      {refused && <Refused>{refused}</Refused>}
    </li>
  );
}
