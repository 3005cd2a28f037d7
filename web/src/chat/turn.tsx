// One turn: what was said to the model, what it did and said, and how it ended. Drawn again only if it has changed.
import { ChevronRight } from "lucide-react";
import { memo } from "react";
import type { Block, CallBlock, SaidBlock, Turn } from "../log/view";
import { isOver } from "../log/view";
import { CallLine } from "./blocks/call";
import { FileView } from "./blocks/file";
import { MessageBubble } from "./blocks/message";
import { Note, Wake } from "./blocks/note";
import { Reasoning, Said } from "./blocks/said";
import { TurnEnd } from "./turn-end";

type Props = { session_id: string; turn: Turn; isLast: boolean };

export const TurnView = memo(function TurnView({ session_id, turn, isLast }: Props) {
  const over = isOver(turn);
  return (
    <section
      className={`${isLast ? "" : "turn"} space-y-3`}
      data-turn={turn.id}
      data-state={turn.state}
      aria-label={`Turn, ${turn.state}`}
    >
      {turn.left_out > 0 && <p className="text-xs text-muted">{turn.left_out} earlier steps are not shown here.</p>}
      {grouped([...turn.kept, ...turn.blocks], over).map((each) =>
        Array.isArray(each) ? (
          <Steps key={`steps-${keyOf(each[0])}`} session_id={session_id} blocks={each} />
        ) : (
          <BlockView key={keyOf(each)} session_id={session_id} turn={turn} block={each} />
        ),
      )}
      <TurnEnd session_id={session_id} turn={turn} isLast={isLast} />
    </section>
  );
});

function BlockView({ session_id, turn, block }: { session_id: string; turn: Turn; block: Block }) {
  switch (block.type) {
    case "message":
      return <MessageBubble session_id={session_id} turn_id={turn.id} block={block} />;
    case "wake":
      return <Wake session_id={session_id} block={block} />;
    case "note":
      return <Note block={block} />;
    case "text":
      return <Said block={block} />;
    case "reasoning":
      return <Reasoning block={block} />;
    case "file":
      return <FileView block={block} />;
    case "call":
      return <CallLine session_id={session_id} turn_id={turn.id} block={block} />;
  }
}

type Step = CallBlock | SaidBlock;
const FOLDED_FROM = 3;

/** Of a turn that is over, steps that need nobody's look any more are folded. */
function grouped(blocks: readonly Block[], isTurnOver: boolean): (Block | Step[])[] {
  if (!isTurnOver) return [...blocks];
  const found: (Block | Step[])[] = [];
  let steps: Step[] = [];
  const close = () => {
    if (steps.length >= FOLDED_FROM) found.push(steps);
    else found.push(...steps);
    steps = [];
  };
  for (const block of blocks) {
    if (isDull(block)) steps.push(block);
    else {
      close();
      found.push(block);
    }
  }
  close();
  return found;
}

function isDull(block: Block): block is Step {
  if (block.type === "reasoning") return true;
  return (
    block.type === "call" &&
    block.outcome === "success" &&
    !block.task_id &&
    block.files.length + block.artifacts.length === 0
  );
}

function Steps({ session_id, blocks }: { session_id: string; blocks: Step[] }) {
  const calls = blocks.filter((each) => each.type === "call");
  const tools = [...new Set(calls.map((each) => each.tool))].join(", ");
  return (
    <details className="group">
      <summary className="flex list-none items-center gap-2 rounded-lg py-0.5 text-sm text-muted hover:text-ink">
        <ChevronRight className="size-4 transition-transform group-open:rotate-90" />
        {blocks.length} steps{tools && `: ${tools}`}
      </summary>
      <div className="mt-2 space-y-2 border-s-2 border-line ps-3">
        {blocks.map((each) =>
          each.type === "call" ? (
            <CallLine key={keyOf(each)} session_id={session_id} turn_id="" block={each} />
          ) : (
            <Reasoning key={keyOf(each)} block={each} />
          ),
        )}
      </div>
    </details>
  );
}

function keyOf(block: Block | undefined): string {
  if (block === undefined) return "";
  if ("call_id" in block) return `call-${block.call_id}`;
  if ("part" in block) return `part-${block.part}`;
  return `${block.type}-${block.input_id ?? ""}-${block.at}-${"kind" in block ? block.kind : ""}`;
}
