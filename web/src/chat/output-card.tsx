// A typed output as a card: fields of an object by their names. What the model has said in words is not said again.
import { Braces } from "lucide-react";
import type { Turn } from "../log/view";
import { isPreview } from "../log/view";
import { CopyButton } from "../ui/copy";
import { Value, Whole } from "./value";

export function OutputCard({ turn }: { turn: Turn }) {
  const { output } = turn;
  if (output === null || output === undefined || isSaid(turn, output)) return null;
  if (typeof output === "string") return <p className="whitespace-pre-wrap">{output}</p>;
  return (
    <section className="overflow-hidden rounded-xl border border-line bg-panel text-sm" aria-label="Output" data-output>
      <header className="flex items-center gap-2 border-b border-line bg-soft px-3 py-1">
        <Braces className="size-4 text-muted" />
        <span className="flex-1 font-medium">{turn.output_type ?? "Output"}</span>
        <CopyButton text={() => JSON.stringify(output, null, 2)} label="Copy as JSON" />
      </header>
      <div className="p-3">
        {isPreview(output) ? (
          <>
            <pre className="font-mono text-xs whitespace-pre-wrap">{output.$preview}…</pre>
            <Whole href={output.href} bytes={output.bytes} />
          </>
        ) : isFlat(output) ? (
          <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5">
            {Object.entries(output).map(([name, value]) => (
              <Field key={name} name={name} value={value} />
            ))}
          </dl>
        ) : (
          <Value label="" value={output} />
        )}
      </div>
    </section>
  );
}

function Field({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt className="text-muted">{name.replaceAll("_", " ")}</dt>
      <dd className="[overflow-wrap:anywhere]">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
    </>
  );
}

function isFlat(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each !== "object" || each === null || Array.isArray(each));
}

function isSaid(turn: Turn, output: unknown): boolean {
  const texts = turn.blocks.flatMap((each) => (each.type === "text" || each.type === "note" ? [each.text] : []));
  const plain = (text: string) => text.split(/\s+/).join(" ").trim();
  if (typeof output === "string") return !output.trim() || texts.some((each) => plain(each) === plain(output));
  return texts.some((each) => {
    try {
      return JSON.stringify(JSON.parse(each)) === JSON.stringify(output);
    } catch {
      return false;
    }
  });
}
