// What was used today and this week, and how much of the limit that is.
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { components } from "../api/schema";
import type { Usage } from "../api/types";
import { Refused } from "../ui/empty";
import { Card, Facts, Frame, Waiting } from "../ui/frame";
import { dollars } from "./money";

type Period = components["schemas"]["PeriodAnswer"];

export default function UsagePage() {
  const { data, error, isPending } = useQuery({
    queryKey: ["usage"],
    queryFn: () => api.get<Usage>("usage"),
    refetchInterval: 30_000,
  });
  return (
    <Frame title="Usage" about="Tokens that your chats and their background work have used.">
      {error && <Refused>{words(error)}</Refused>}
      {isPending && <Waiting />}
      {data && <Shown usage={data} />}
    </Frame>
  );
}

function Shown({ usage }: { usage: Usage }) {
  const { percent, limit_microdollars: limit } = usage;
  return (
    <>
      {percent !== null && (
        <Card title="Limit of the day">
          <div
            role="progressbar"
            aria-label="Used of the limit of the day"
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={Math.min(100, percent)}
            className="h-2 overflow-hidden rounded-full bg-soft"
          >
            <div
              className={`h-full rounded-full ${percent >= 100 ? "bg-bad" : percent >= 80 ? "bg-warn" : "bg-accent"}`}
              style={{ width: `${Math.min(100, percent)}%` }}
            />
          </div>
          <p className="mt-2 text-sm text-muted">
            {percent} % used{limit !== null && ` of ${dollars(limit)}`}. It begins anew{" "}
            {new Date(usage.resets_at).toLocaleString()}.{percent >= 100 && " Until then new turns wait."}
          </p>
        </Card>
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        <Span title="Today" period={usage.today} isMoneyShown={usage.is_money_shown} />
        <Span title="This week" period={usage.week} isMoneyShown={usage.is_money_shown} />
      </div>
      {percent === null && (
        <p className="text-sm text-muted">
          There is no limit. Today ends {new Date(usage.resets_at).toLocaleString()}.
        </p>
      )}
    </>
  );
}

function Span({ title, period, isMoneyShown }: { title: string; period: Period; isMoneyShown: boolean }) {
  const { cost_microdollars: cost, unpriced_requests: unpriced } = period;
  const all = period.input_tokens + period.output_tokens;
  return (
    <Card title={title}>
      <p className="text-3xl font-semibold tracking-tight tabular-nums">
        {isMoneyShown && cost !== null ? dollars(cost) : all.toLocaleString()}
        {!(isMoneyShown && cost !== null) && <span className="ms-1.5 text-sm font-normal text-muted">tokens</span>}
      </p>
      <div className="mt-4">
        <Facts
          rows={[
            ["Requests", period.requests.toLocaleString()],
            ["Tokens read", period.input_tokens.toLocaleString()],
            ["Tokens written", period.output_tokens.toLocaleString()],
            ["From the cache", period.cache_read_tokens.toLocaleString()],
            ["Of unknown price", isMoneyShown && unpriced > 0 ? `${unpriced} requests` : null],
          ]}
        />
      </div>
    </Card>
  );
}
