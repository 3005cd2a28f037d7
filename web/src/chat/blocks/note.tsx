// What the runtime told the model: that work in the background has ended, and the like. And what it tells readers.
import { BellRing, ChevronRight, Gavel, Info, Scissors } from "lucide-react";
import { memo } from "react";
import type { NoteBlock, WakeBlock } from "../../log/view";
import { useStore } from "../../store";
import { clock } from "../../ui/time";
import { SAID, sayState } from "../states";

export const Wake = memo(function Wake({ session_id, block }: { session_id: string; block: WakeBlock }) {
  const tasks = useStore((state) => state.views[session_id]?.tasks);
  const named = block.task_ids.flatMap((id) => (tasks?.[id] ? [tasks[id]] : []));
  const told = named.map((each) => `${each.title} ${sayState(each, SAID)}`).join(", ");
  return (
    <details className="group rounded-xl border border-dashed border-line px-3 py-1.5 text-sm" data-block="wake">
      <summary className="flex list-none items-center gap-2 text-muted">
        <BellRing className="size-4 shrink-0 text-accent" />
        <span className="min-w-0 flex-1 truncate">{told || "Work in the background has ended"}</span>
        <time dateTime={block.at} className="text-xs">
          {clock(block.at)}
        </time>
        <ChevronRight className="size-4 shrink-0 transition-transform group-open:rotate-90" />
      </summary>
      <pre className="mt-2 max-h-64 overflow-auto font-mono text-xs whitespace-pre-wrap text-muted">{block.text}</pre>
    </details>
  );
});

const ICONS: Record<string, typeof Info> = { settled: Gavel, compacted: Scissors };

const WORDS: Record<string, string> = {
  compacted: "Older messages were shortened for the model. Nothing of the chat is lost.",
};

export const Note = memo(function Note({ block }: { block: NoteBlock }) {
  const Icon = ICONS[block.kind] ?? Info;
  if (block.kind === "closing")
    return (
      <p data-block="note" data-text>
        {block.text}
      </p>
    );
  const [first = "", ...said] = (WORDS[block.kind] ?? block.text).split("\n");
  const summary = block.kind === "compacted" ? block.details?.summary : undefined;
  const rest = typeof summary === "string" ? ["What it is told in their place:", summary] : said;
  return (
    <details className="group text-sm text-muted" data-block="note">
      <summary className="flex list-none items-center gap-2">
        <Icon className="size-4 shrink-0" />
        <span className="min-w-0 truncate">{first}</span>
        {rest.length > 0 && <ChevronRight className="size-4 shrink-0 transition-transform group-open:rotate-90" />}
      </summary>
      {rest.length > 0 && <pre className="mt-1 font-mono text-xs whitespace-pre-wrap">{rest.join("\n")}</pre>}
    </details>
  );
});
