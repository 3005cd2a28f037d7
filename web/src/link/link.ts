// A tab's end of the one connection: in a shared worker, or in the tab itself where there is none.
import { BASE } from "../api/client";
import { Hub, type Port } from "./hub";
import type { ToHub, ToTab, Wants } from "./protocol";
import workerUrl from "./worker.ts?worker&url";

type Policy = { createScriptURL(url: string): string };
type Factory = { createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy };

/** Pages may only load scripts whose addresses this makes: it knows one. */
function trusted(url: string): string {
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
  if (factory === undefined) return url;
  return factory.createPolicy("outlast", { createScriptURL: () => url }).createScriptURL(url);
}

export class Link {
  private readonly send: (message: ToHub) => void;
  private wants: Wants = { base: BASE, feed: null, sessions: {}, outputs: {} };

  constructor(hear: (message: ToTab) => void) {
    this.send = sharedWorker(hear) ?? own(hear);
    addEventListener("pagehide", () => this.send({ bye: true }));
    addEventListener("pageshow", (event) => event.persisted && this.tell());
    addEventListener("online", () => this.send({ nudge: true }));
    document.addEventListener("visibilitychange", () => !document.hidden && this.send({ nudge: true }));
  }

  /** From now on: the log of each session from its position on, and the output of each task. */
  want(sessions: Record<string, number>, outputs: Record<string, number | "end">, feed: string | null): void {
    this.wants = { base: BASE, feed, sessions, outputs };
    this.tell();
  }

  nudge(): void {
    this.send({ nudge: true });
  }

  private tell(): void {
    this.send({ wants: this.wants });
  }
}

function sharedWorker(hear: (message: ToTab) => void): ((message: ToHub) => void) | null {
  if (typeof SharedWorker === "undefined") return null;
  try {
    const { port } = new SharedWorker(trusted(workerUrl), { type: "module", name: "outlast" });
    port.onmessage = ({ data }: MessageEvent<ToTab>) => hear(data);
    return (message) => port.postMessage(message);
  } catch {
    return null;
  }
}

function own(hear: (message: ToTab) => void): (message: ToHub) => void {
  const hub = new Hub();
  const port: Port = { postMessage: (message) => queueMicrotask(() => hear(message)) };
  return (message) => hub.take(port, message);
}
