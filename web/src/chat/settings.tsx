// What a session is set to: shown, not hidden behind its agent.
import { SlidersHorizontal } from "lucide-react";
import { useState } from "react";
import type { Session } from "../api/types";
import { IconButton } from "../ui/button";
import { Dialog } from "../ui/dialog";

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
      </Dialog>
    </>
  );
}

function sayBudget(budget: Session["budget_seconds"]): string {
  if (budget === null) return "never: they are waited for";
  return budget === undefined || budget === "default" ? "as the server says" : `after ${budget} s`;
}
