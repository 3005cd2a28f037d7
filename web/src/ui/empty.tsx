import type { ReactNode } from "react";

/** What stands where nothing is yet, and what to do about it. */
export function Nothing({ title, icon, children }: { title: string; icon?: ReactNode; children?: ReactNode }) {
  return (
    <div className="mx-auto grid h-full max-w-md place-content-center gap-2 p-8 text-center">
      {icon && (
        <div className="mx-auto mb-1 grid size-12 place-items-center rounded-2xl bg-tint text-accent">{icon}</div>
      )}
      <h1 className="text-lg font-semibold">{title}</h1>
      <div className="text-sm text-muted">{children}</div>
    </div>
  );
}

export function Refused({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className="rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad">
      {children}
    </p>
  );
}
