/** What the server said when it refused, or that it could not be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** In words for people, whatever went wrong. */
export function words(error: unknown): string {
  if (error instanceof Problem) return error.message;
  if (error instanceof TypeError) return "The server does not answer. Try again in a moment.";
  return error instanceof Error ? error.message : String(error);
}

export async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  const { detail, code } = (body ?? {}) as { detail?: unknown; code?: unknown };
  const said = typeof detail === "string" ? detail : `The server answered ${response.status}.`;
  return new Problem(response.status, typeof code === "string" ? code : "unknown", said);
}
