// Blocks of a turn: found, replaced, left out. Every change makes a new turn and leaves the old one as it was.
import type { Block, CallBlock, SaidBlock, Turn } from "./view";

export function append(turn: Turn, block: Block): Turn {
  return { ...turn, blocks: [...turn.blocks, block] };
}

export function withoutParts(turn: Turn, parts: readonly string[]): Turn {
  if (parts.length === 0) return turn;
  const dropped = new Set(parts);
  return { ...turn, blocks: turn.blocks.filter((each) => !("part" in each && each.part && dropped.has(each.part))) };
}

/** Replaces the last block that fits; the same turn if none does. */
function replace<B extends Block>(turn: Turn, fits: (block: Block) => block is B, change: (block: B) => B): Turn {
  const place = turn.blocks.findLastIndex(fits);
  const found = turn.blocks[place];
  if (found === undefined || !fits(found)) return turn;
  return { ...turn, blocks: turn.blocks.with(place, change(found)) };
}

export function changeSaid(turn: Turn, part: string, change: (block: SaidBlock) => SaidBlock): Turn {
  const fits = (each: Block): each is SaidBlock =>
    (each.type === "text" || each.type === "reasoning") && each.part === part;
  return replace(turn, fits, change);
}

/** A call that nothing asked for in this attempt gets a block of its own. */
export function changeCall(turn: Turn, call_id: string, tool: string, change: (block: CallBlock) => CallBlock): Turn {
  const fits = (each: Block): each is CallBlock => each.type === "call" && each.call_id === call_id;
  if (turn.blocks.some(fits)) return replace(turn, fits, change);
  return append(turn, change(newCall(call_id, tool, null)));
}

export function newCall(call_id: string, tool: string, part: string | null): CallBlock {
  return { type: "call", call_id, tool, part, state: "asked", files: [], artifacts: [] };
}

/** Nothing of a turn that is over is still being said. */
export function closed(turn: Turn): Turn {
  if (!turn.blocks.some((each) => "is_open" in each && each.is_open)) return turn;
  return { ...turn, blocks: turn.blocks.map((each) => ("is_open" in each ? { ...each, is_open: false } : each)) };
}
