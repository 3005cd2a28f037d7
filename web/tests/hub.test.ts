// The one connection: what it asks for, how it goes on after a break, and who is told what.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Hub } from "../src/link/hub";
import type { ToTab, Wants } from "../src/link/protocol";

const asked: URL[] = [];
let push: (text: string) => void = () => undefined;
let end: () => void = () => undefined;
let status = 200;

beforeEach(() => {
  vi.useFakeTimers();
  asked.length = 0;
  status = 200;
  vi.stubGlobal("fetch", (url: string, { signal }: RequestInit) => {
    asked.push(new URL(url));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        push = (text) => controller.enqueue(new TextEncoder().encode(text));
        end = () => controller.close();
        signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
      },
    });
    return Promise.resolve(new Response(status === 200 ? body : "{}", { status }));
  });
});
afterEach(() => vi.useRealTimers());

function tab(hub: Hub, wants: Partial<Wants> = {}) {
  const told: ToTab[] = [];
  const port = { postMessage: (message: ToTab) => told.push(message) };
  const want = (more: Partial<Wants>) =>
    hub.take(port, { wants: { base: "http://a/x/", feed: null, sessions: {}, outputs: {}, ...more } });
  want(wants);
  const events = () => told.flatMap((each) => ("events" in each ? each.events.map(({ number }) => number) : []));
  return { told, want, events, leave: () => hub.take(port, { bye: true }) };
}

const frame = (number: number, id = `1.${number}`) =>
  `id: ${id}\ndata: ${JSON.stringify({ type: "part.delta", number, session_id: "ses_a", data: {} })}\n\n`;
const parameters = () => Object.fromEntries(asked.at(-1)?.searchParams ?? []);

describe("the hub", () => {
  it("asks once for all tabs, from where they stand", async () => {
    const hub = new Hub();
    const first = tab(hub, { feed: "1.5", sessions: { ses_a: 40 } });
    const second = tab(hub, { feed: "1.9", sessions: { ses_a: 40 } });
    await vi.advanceTimersByTimeAsync(1);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.href.startsWith("http://a/x/v1/events?")).toBe(true);
    expect(parameters()).toEqual({ after: "1.5", sessions: "ses_a:40" });
    push(frame(41));
    await vi.advanceTimersByTimeAsync(1);
    expect([first.events(), second.events()]).toEqual([[41], [41]]);
  });

  it("goes on after a break from the last that it was told", async () => {
    const hub = new Hub();
    const one = tab(hub, { feed: "1.5", sessions: { ses_a: 40 } });
    await vi.advanceTimersByTimeAsync(1);
    push(frame(41) + frame(42));
    await vi.advanceTimersByTimeAsync(1);
    end();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked).toHaveLength(2);
    expect(parameters()).toEqual({ after: "1.42", sessions: "ses_a:42" });
    expect(one.told).toContainEqual({ state: expect.objectContaining({ is: "waiting" }) });
  });

  it("tells again what a tab has not seen, and opens no second connection", async () => {
    const hub = new Hub();
    tab(hub, { feed: "1.5", sessions: { ses_a: 40 } });
    await vi.advanceTimersByTimeAsync(1);
    push(frame(50));
    await vi.advanceTimersByTimeAsync(1);
    tab(hub, { sessions: { ses_a: 45, ses_b: 3 } });
    await vi.advanceTimersByTimeAsync(1);
    expect(parameters().sessions).toBe("ses_a:45,ses_b:3");
  });

  it("gives up a connection on which nothing comes, and waits longer each time", async () => {
    const hub = new Hub();
    const one = tab(hub);
    await vi.advanceTimersByTimeAsync(1);
    push(`data: ${JSON.stringify({ type: "stream.opened", data: { cursor: "1.7", heartbeat_seconds: 1 } })}\n\n`);
    await vi.advanceTimersByTimeAsync(1_500);
    push(": still here\n\n");
    await vi.advanceTimersByTimeAsync(1_500);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(asked.length).toBeGreaterThan(1);
    expect(parameters().after).toBe("1.7");
    expect(one.told).toContainEqual({ state: { is: "replaying" } });
  });

  it("says that nobody is signed in, and does not try again until it is nudged", async () => {
    status = 401;
    const hub = new Hub();
    const one = tab(hub);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(1);
    expect(one.told.at(-1)).toEqual({ state: { is: "signed-out" } });
  });

  it("lets every tab look anew when a session is no longer there", async () => {
    status = 404;
    const hub = new Hub();
    const one = tab(hub, { sessions: { ses_gone: 4 } });
    await vi.advanceTimersByTimeAsync(1);
    expect(one.told).toContainEqual({ expired: true });
    status = 200;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(parameters()).toEqual({ after: "now" });
  });

  it("closes with the last tab", async () => {
    const hub = new Hub();
    const one = tab(hub);
    await vi.advanceTimersByTimeAsync(1);
    one.leave();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(1);
  });
});
