// Instants and spans in words. Elapsed time counts by the server's clock.
import { useEffect, useState } from "react";
import { now } from "../store";

const SHORT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function span(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function ago(at: string): string {
  const seconds = (Date.parse(at) - now()) / 1_000;
  for (const [unit, size] of STEPS) if (-seconds >= size) return RELATIVE.format(Math.round(seconds / size), unit);
  return "now";
}

type Clock = { told: Set<() => void>; timer: ReturnType<typeof setInterval> };
const clocks = new Map<number, Clock>();

/** One clock for all that is drawn again as often: then they are drawn at once. */
function everySo(often: number, tell: () => void): () => void {
  const told = clocks.get(often)?.told ?? new Set();
  const tellAll = () => {
    for (const each of told) each();
  };
  if (!clocks.has(often)) clocks.set(often, { told, timer: setInterval(tellAll, often) });
  told.add(tell);
  return () => {
    told.delete(tell);
    if (told.size > 0) return;
    clearInterval(clocks.get(often)?.timer);
    clocks.delete(often);
  };
}

/** Drawn again each second while `isOn`. */
export function useTick(isOn: boolean, every = 1_000): number {
  const [tick, setTick] = useState(0);
  useEffect(() => (isOn ? everySo(every, () => setTick((each) => each + 1)) : undefined), [isOn, every]);
  return tick;
}

export function Elapsed({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) {
  useTick(Boolean(from) && !to);
  if (!from) return null;
  const end = to ? Date.parse(to) : now();
  const milliseconds = end - Date.parse(from);
  return (
    <span className="tabular-nums">{to ? span(milliseconds) : span(Math.floor(milliseconds / 1_000) * 1_000)}</span>
  );
}

export function Ago({ at }: { at: string }) {
  useTick(true, 30_000);
  return (
    <time dateTime={at} title={LONG.format(new Date(at))}>
      {ago(at)}
    </time>
  );
}

export function clock(at: string): string {
  return SHORT.format(new Date(at));
}
