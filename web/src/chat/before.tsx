// What a forked or imported session began with: messages of turns that it never ran itself, from the model's history.
import { useQuery } from "@tanstack/react-query";
import { Wrench } from "lucide-react";
import { api, type Page } from "../api/client";
import { Prose } from "../ui/markdown";
import { digest, Value } from "./value";

type Part = { part_kind: string; content?: unknown; tool_name?: string; args?: unknown; tool_call_id?: string };
type Stored = { position: number; turn_id: string | null; message: { parts: Part[] } };
const PAGE = 100;

export function Before({ id, isFirst }: { id: string; isFirst: boolean }) {
  const { data } = useQuery({
    queryKey: ["before", id],
    queryFn: () => messagesOf(id),
    enabled: isFirst,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!isFirst || !data || data.length === 0) return null;
  const results = new Map(data.flatMap(({ message }) => message.parts.flatMap(resultOf)));
  return (
    <section className="space-y-4" aria-label="What was before" data-before>
      {data.flatMap(({ position, message }) =>
        message.parts.map((part, index) => <Shown key={`${position}-${index}`} part={part} results={results} />),
      )}
      <p className="flex items-center gap-3 text-xs text-muted">
        <span className="h-px flex-1 bg-line" />
        This chat begins here, with what was said before.
        <span className="h-px flex-1 bg-line" />
      </p>
    </section>
  );
}

function Shown({ part, results }: { part: Part; results: ReadonlyMap<string, unknown> }) {
  switch (part.part_kind) {
    case "user-prompt":
      return (
        <div className="ms-auto w-fit max-w-[85%] rounded-2xl rounded-ee-md bg-tint px-4 py-2.5 whitespace-pre-wrap [overflow-wrap:anywhere]">
          {wordsOf(part.content)}
        </div>
      );
    case "text":
      return <Prose text={wordsOf(part.content)} />;
    case "tool-call":
      return (
        <details className="rounded-xl border border-line bg-panel px-3 py-2 text-sm">
          <summary className="flex list-none items-center gap-2.5">
            <Wrench className="size-4 shrink-0 text-muted" />
            <span className="shrink-0 font-mono text-[13px]">{part.tool_name}</span>
            <span className="min-w-0 truncate text-muted">{digest(part.args)}</span>
          </summary>
          <div className="mt-2 space-y-3">
            <Value label="Input" value={part.args} />
            <Value label="Output" value={results.get(part.tool_call_id ?? "")} />
          </div>
        </details>
      );
    default:
      return null;
  }
}

/** Those of no turn of this session stand before all others. One look is enough where there are none. */
async function messagesOf(id: string): Promise<Stored[]> {
  const found: Stored[] = [];
  let after: string | undefined;
  for (let limit = 1; ; limit = PAGE) {
    const page: Page<Stored> = await api.get<Page<Stored>>(`sessions/${id}/messages`, { limit, after });
    const own = page.items.findIndex((each) => each.turn_id !== null);
    found.push(...(own < 0 ? page.items : page.items.slice(0, own)));
    if (own >= 0 || page.next === null) return found;
    after = page.next;
  }
}

function resultOf({ part_kind, tool_call_id, content }: Part): [string, unknown][] {
  return part_kind === "tool-return" && tool_call_id ? [[tool_call_id, content]] : [];
}

/** A prompt may have pictures and the like among its words. */
function wordsOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((each) => (typeof each === "string" ? each : "[a file]")).join("\n");
}
