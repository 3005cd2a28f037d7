// Requests to the server, relative to where the console stands. A refusal is thrown as a `Problem`.
import { problemOf } from "./problems";

/** The address below which the console stands, with a slash at its end. */
export const BASE = new URL("./", document.baseURI).href;
/** The same as a path without a slash at its end, for routes. */
export const BASE_PATH = new URL(BASE).pathname.replace(/\/$/, "");

type Query = Record<string, string | number | boolean | undefined>;

export function address(path: string, query: Query = {}): string {
  const url = new URL(`v1/${path}`, BASE);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  return url.href;
}

async function ask<T>(method: string, path: string, options: { query?: Query; body?: unknown; key?: string } = {}) {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.key !== undefined) headers["Idempotency-Key"] = options.key;
  const response = await fetch(address(path, options.query), {
    method,
    headers,
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? null : await response.json()) as T;
}

export const api = {
  get: <T>(path: string, query?: Query) => ask<T>("GET", path, { query }),
  post: <T>(path: string, body: unknown = {}, key?: string) => ask<T>("POST", path, { body, key }),
  put: <T>(path: string, body: unknown) => ask<T>("PUT", path, { body }),
  patch: <T>(path: string, body: unknown) => ask<T>("PATCH", path, { body }),
  delete: (path: string) => ask<null>("DELETE", path),
};

export type Page<T> = { items: T[]; next: string | null };

/** A name that nothing else has: for sends that may have to be repeated. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
}
