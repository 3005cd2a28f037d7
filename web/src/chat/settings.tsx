// What a session is set to: shown, not hidden behind its agent.
import { SlidersHorizontal } from "lucide-react";
import { useState } from "react";
import { api } from "../api/client";
import type { Session } from "../api/types";
import { useAction } from "../ui/action";
import { Button, IconButton } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refused } from "../ui/empty";

export function SettingsButton({ session }: { session: Session }) {
  const [isOpen, setOpen] = useState(false);
  const { permissions, budget_seconds: budget } = session;
  const rows: [string, string][] = [
    ["Agent", session.agent],
    ["Model", session.model ?? "as the agent says"],
    ["Calls go on in the background", sayBudget(budget)],
    ["Allowed tools", permissions?.allow?.join(", ") ?? "all"],
    ["Denied tools", permissions?.deny?.join(", ") || "none"],
    ["Dry run", session.is_dry_run ? "yes: tools only say what they would do" : "no"],
    ["Session", session.id],
  ];
  return (
    <>
      <IconButton label="Settings of this chat" onClick={() => setOpen(true)}>
        <SlidersHorizontal className="size-4" />
      </IconButton>
      <Dialog title="Settings of this chat" isOpen={isOpen} onClose={() => setOpen(false)}>
        <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 text-sm">
          {rows.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="[overflow-wrap:anywhere]">{value}</dd>
            </div>
          ))}
        </dl>
        <Always session={session} />
      </Dialog>
    </>
  );
}

/** What somebody has allowed once and for all: taken back here. */
function Always({ session }: { session: Session }) {
  const rules = session.permissions?.always ?? [];
  const { isBusy, refused, run } = useAction();
  if (rules.length === 0) return null;
  return (
    <section className="mt-4 space-y-2 text-sm">
      <h3 className="font-semibold">Run without being asked for</h3>
      <ul className="space-y-1">
        {rules.map(({ id, rule, by }) => (
          <li key={id} className="flex items-center gap-3" data-always={rule}>
            <code className="min-w-0 flex-1 font-mono text-xs [overflow-wrap:anywhere]">{rule}</code>
            <span className="text-xs text-muted">by {by}</span>
            <Button
              className="!py-0.5 !text-xs"
              disabled={isBusy}
              onClick={() => void run(() => api.delete(`sessions/${session.id}/always/${id}`))}
            >
              Ask again
            </Button>
          </li>
        ))}
      </ul>
      {refused && <Refused>{refused}</Refused>}
    </section>
  );
}

function sayBudget(budget: Session["budget_seconds"]): string {
  if (budget === null) return "never: they are waited for";
  return budget === undefined || budget === "default" ? "as the server says" : `after ${budget} s`;
}
