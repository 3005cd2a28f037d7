import { Link } from "wouter";
import type { View } from "../log/view";
import { SessionMenu } from "../sessions/menu";
import { shownTitle } from "../sessions/title";
import { useTabName } from "../ui/title";
import { SettingsButton } from "./settings";

export function Header({ view }: { view: View }) {
  const { session } = view;
  const title = shownTitle(view);
  useTabName(title);
  return (
    <header className="flex min-h-14 items-center gap-2 border-b border-line px-4 max-md:ps-14">
      <h1 className="min-w-0 flex-1 truncate text-[15px] font-semibold">{title}</h1>
      {session.parent_id && (
        <Link to={`/sessions/${session.parent_id}`} className="shrink-0 text-sm text-accent underline">
          To the parent
        </Link>
      )}
      {session.is_dry_run && <span className="rounded-full bg-warn-soft px-2 text-xs text-warn">dry run</span>}
      <span className="shrink-0 rounded-full bg-soft px-2.5 py-0.5 text-xs text-muted max-sm:hidden">
        {session.agent}
      </span>
      <SettingsButton session={session} />
      <SessionMenu session={session} />
    </header>
  );
}
