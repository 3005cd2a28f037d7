import type { ButtonHTMLAttributes, ReactNode } from "react";

const KINDS = {
  plain: "border border-line bg-panel hover:bg-soft",
  primary: "bg-accent text-on-accent hover:opacity-90 border border-transparent",
  danger: "border border-line bg-panel text-bad hover:bg-bad-soft",
  quiet: "border border-transparent text-muted hover:bg-soft hover:text-ink",
};

type Props = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: keyof typeof KINDS };

export function buttonClass(kind: keyof typeof KINDS = "plain"): string {
  return `inline-flex items-center justify-center gap-1.5 rounded-lg px-3 py-1.5 text-sm font-medium transition-colors disabled:opacity-50 disabled:pointer-events-none ${KINDS[kind]}`;
}

export function Button({ kind = "plain", className = "", ...rest }: Props) {
  return <button type="button" className={`${buttonClass(kind)} ${className}`} {...rest} />;
}

type IconProps = ButtonHTMLAttributes<HTMLButtonElement> & { label: string; children: ReactNode };

/** A button that is only a picture: its label is said, and shown when a pointer rests on it. */
export function IconButton({ label, className = "", ...rest }: IconProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`inline-grid size-8 shrink-0 place-items-center rounded-lg text-muted transition-colors hover:bg-soft hover:text-ink disabled:pointer-events-none disabled:opacity-40 ${className}`}
      {...rest}
    />
  );
}
