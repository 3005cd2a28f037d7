// Tokens and money, added up as the server does. What is not known stays unknown.
import type { Usage } from "./view";

const NAMES = ["requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"] as const;
type Given = { [name: string]: unknown } | null | undefined;

export function plus(known: Usage | null | undefined, given: Given): Usage {
  const sum = { ...NONE, ...known };
  if (!given) return sum;
  for (const name of NAMES) sum[name] += number(given[name]) ?? (name === "requests" ? 1 : 0);
  const cost = number(given.cost_microdollars);
  sum.cost_microdollars = cost === null || sum.cost_microdollars === null ? null : sum.cost_microdollars + cost;
  return sum;
}

/** What the end of a turn says counts: it knows more than the answers have told. */
export function totalOf(known: Usage | null | undefined, given: Given): Usage {
  if (!given || Object.keys(given).length === 0) return { ...NONE, ...known };
  return { ...NONE, cost_microdollars: null, ...(given as Partial<Usage>) };
}

export const NONE: Usage = {
  requests: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_microdollars: 0,
};

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
