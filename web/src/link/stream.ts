// Server-sent events by `fetch`: it shows the status and the comments, which EventSource hides.
import { createParser } from "eventsource-parser";

export type Frame = { id: string | undefined; body: Record<string, unknown> };

/** Gives the status, then frames as they come. Ends when the server ends; throws when nothing came for too long. */
export async function* frames(
  url: string,
  stop: AbortController,
  silence: () => number,
): AsyncGenerator<{ status: number } | { batch: Frame[] }> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(), silence());
  };
  alive();
  try {
    const headers = { Accept: "text/event-stream" };
    const response = await fetch(url, { headers, signal: stop.signal, cache: "no-store" });
    yield { status: response.status };
    if (!response.ok || response.body === null) return;
    let batch: Frame[] = [];
    const parser = createParser({
      onEvent: ({ id, data }) => batch.push({ id, body: JSON.parse(data) as Record<string, unknown> }),
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      parser.feed(value);
      if (batch.length > 0) {
        yield { batch };
        batch = [];
      }
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}
