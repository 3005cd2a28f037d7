type Progress = {
  current?: number;
  total?: number | null;
  unit?: string | null;
  label?: string | null;
  message?: string;
};

/** How far something is: a bar and words. A tool may count past its end, or backwards. */
export function Bar({ progress, label }: { progress: unknown; label: string }) {
  const { current, total, unit, label: said, message } = (progress ?? {}) as Progress;
  const part = total && current !== undefined ? Math.min(1, Math.max(0, current / total)) : null;
  const words = [
    part === null
      ? current === undefined
        ? ""
        : `${current}${unit ? ` ${unit}` : ""}`
      : `${current} of ${total}${unit ? ` ${unit}` : ""}`,
    said ?? message ?? "",
  ].filter(Boolean);
  return (
    <div className="space-y-1">
      <div
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(part === null ? {} : { "aria-valuenow": Math.round(part * 100) })}
        className="h-1.5 overflow-hidden rounded-full bg-soft"
      >
        {part === null ? (
          <div className="indeterminate h-full w-1/3 rounded-full bg-accent" />
        ) : (
          // Moved, not made wider: of fifty that are moving, none has the page laid out again.
          <div
            className="h-full rounded-full bg-accent transition-transform"
            style={{ transform: `translateX(${(part - 1) * 100}%)` }}
          />
        )}
      </div>
      {words.length > 0 && <p className="text-xs text-muted">{words.join(" · ")}</p>}
    </div>
  );
}
