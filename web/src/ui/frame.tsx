// What every page beside the chat stands in: its name, what can be done there, and room for one column.
import type { ReactNode } from "react";

type Props = { title: ReactNode; about?: ReactNode; actions?: ReactNode; isWide?: boolean; children: ReactNode };

export function Frame({ title, about, actions, isWide = false, children }: Props) {
  const width = isWide ? "max-w-5xl" : "max-w-3xl";
  return (
    <div className="min-h-0 flex-1 overflow-y-auto" data-page>
      <div className={`mx-auto w-full ${width} space-y-6 px-4 pt-14 pb-16 sm:px-8 md:pt-10`}>
        <header className="flex flex-wrap items-start gap-x-4 gap-y-3">
          <div className="min-w-0 flex-1 basis-64">
            <h1 className="text-2xl font-semibold tracking-tight [overflow-wrap:anywhere]">{title}</h1>
            {about && <div className="mt-1 text-sm text-muted">{about}</div>}
          </div>
          {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
        </header>
        {children}
      </div>
    </div>
  );
}

export function Card({ title, actions, children }: { title?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="rounded-2xl border border-line bg-panel">
      {(title || actions) && (
        <div className="flex flex-wrap items-center gap-2 px-4 pt-3.5">
          <h2 className="min-w-0 flex-1 text-sm font-semibold">{title}</h2>
          {actions}
        </div>
      )}
      <div className="p-4">{children}</div>
    </section>
  );
}

/** Rows of a list as one card with lines between them. */
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul aria-label={label} className="divide-y divide-line overflow-hidden rounded-2xl border border-line bg-panel">
      {children}
    </ul>
  );
}

const TONES = {
  plain: "bg-soft text-muted",
  good: "bg-tint text-accent",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};
export type Tone = keyof typeof TONES;

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className={`inline-flex shrink-0 items-center rounded-full px-2 py-px text-xs ${TONES[tone]}`}>
      {children}
    </span>
  );
}

export function Facts({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5 text-sm">
      {rows.map(([name, value]) =>
        value === null || value === undefined || value === "" ? null : (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** Lines that stand while a list is on its way. */
export function Waiting() {
  return (
    <div className="animate-pulse space-y-3" aria-hidden="true">
      <div className="h-14 rounded-2xl bg-soft" />
      <div className="h-14 rounded-2xl bg-soft" />
      <div className="h-14 rounded-2xl bg-soft" />
    </div>
  );
}
