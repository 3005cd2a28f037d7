// The frame of every page: the side bar with places and sessions, a drawer on phones, and the state of the link.
import { Menu as MenuIcon, PanelLeftClose } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { useTold } from "./needs/notices";
import { Keyboard } from "./palette/keys";
import { PLACES, type Place, TOOLS } from "./routes";
import { SessionList } from "./sessions/list";
import { IconButton } from "./ui/button";
import { LinkBar } from "./ui/link-state";
import { Logo } from "./ui/logo";
import { ThemeButton } from "./ui/theme-button";

export function Shell({ children }: { children: ReactNode }) {
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever goes somewhere wants to see it
  useEffect(() => setOpen(false), [path]);
  return (
    <div className="flex h-full flex-col">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">
        To the content
      </a>
      <LinkBar />
      <Keyboard />
      <div className="flex min-h-0 flex-1">
        {isOpen && (
          <button
            type="button"
            aria-label="Close the side bar"
            className="fixed inset-0 z-30 bg-black/40 md:hidden"
            onClick={() => setOpen(false)}
          />
        )}
        <aside
          className={`z-40 w-72 shrink-0 flex-col border-e border-line bg-soft/60 max-md:fixed max-md:inset-y-0 max-md:bg-ground max-md:shadow-xl ${isOpen ? "flex" : "hidden md:flex"}`}
          aria-label="Places and chats"
        >
          <div className="flex items-center gap-2.5 px-4 pt-4 pb-2">
            <Logo />
            <span className="flex-1 text-[15px] font-semibold tracking-tight">Outlast</span>
            <ThemeButton />
            <IconButton label="Close the side bar" className="md:!hidden" onClick={() => setOpen(false)}>
              <PanelLeftClose className="size-4" />
            </IconButton>
          </div>
          <Places path={path} />
          <SessionList />
          <Tools path={path} />
        </aside>
        <main id="main" className="relative flex min-w-0 flex-1 flex-col">
          <IconButton
            label="Open the side bar"
            className="!absolute top-2.5 left-2.5 z-20 border border-line bg-panel md:!hidden"
            onClick={() => setOpen(true)}
          >
            <MenuIcon className="size-4" />
          </IconButton>
          {children}
        </main>
      </div>
    </div>
  );
}

function Places({ path }: { path: string }) {
  const needs = useTold();
  return (
    <nav aria-label="Places" className="px-2 pb-2">
      {PLACES.map(({ to, label, icon, isOf, counts }: Place) => (
        <Link
          key={to}
          to={to}
          aria-current={isOf.test(path) ? "page" : undefined}
          className="flex items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-sm text-muted hover:bg-soft hover:text-ink aria-[current]:bg-soft aria-[current]:font-medium aria-[current]:text-ink"
        >
          {icon}
          {label}
          {counts && needs > 0 && (
            <span className="ms-auto rounded-full bg-warn-soft px-2 text-xs font-semibold text-warn" data-needs={needs}>
              {needs}
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}

function Tools({ path }: { path: string }) {
  return (
    <nav aria-label="Settings" className="flex items-center gap-1 border-t border-line px-3 py-2">
      {TOOLS.map(({ to, label, icon, isOf }) => (
        <Link
          key={to}
          to={to}
          title={label}
          aria-label={label}
          aria-current={isOf.test(path) ? "page" : undefined}
          className="grid size-8 place-items-center rounded-lg text-muted hover:bg-soft hover:text-ink aria-[current]:bg-soft aria-[current]:text-ink"
        >
          {icon}
        </Link>
      ))}
    </nav>
  );
}
