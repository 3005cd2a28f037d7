import { Brain, ChevronRight } from "lucide-react";
import { memo } from "react";
import type { SaidBlock } from "../../log/view";
import { Prose } from "../../ui/markdown";
import { Whole } from "../value";

export const Said = memo(function Said({ block }: { block: SaidBlock }) {
  if (!block.text && !block.is_open) return null;
  return (
    <div data-block="text">
      <div data-text data-open={block.is_open || undefined}>
        <Prose text={block.text} isOpen={block.is_open} />
      </div>
      {block.cut && <Whole href={block.cut.href} bytes={block.cut.bytes} />}
    </div>
  );
});

export const Reasoning = memo(function Reasoning({ block }: { block: SaidBlock }) {
  if (!block.text && !block.is_open) return null;
  return (
    <details className="group" data-block="reasoning">
      <summary className="flex list-none items-center gap-2 rounded-lg py-0.5 text-sm text-muted hover:text-ink">
        <ChevronRight className="size-4 transition-transform group-open:rotate-90" />
        <Brain className="size-4" />
        {block.is_open ? <span className="shimmer">Thinking…</span> : "Thought"}
      </summary>
      <div className="mt-2 border-s-2 border-line ps-3 text-sm text-muted" data-text>
        <Prose text={block.text} isOpen={block.is_open} />
      </div>
    </details>
  );
});
