// Blocks of a turn: found, replaced, left out. Every change makes a new turn and leaves the old one as it was.
import type { Block, CallBlock, Turn } from "./view";

export function append(turn: Turn, block: Block): Turn {
  return { ...turn, blocks: [...turn.blocks, block] };
}

export function withoutParts(turn: Turn, parts: readonly string[]): Turn {
  if (parts.length === 0) return turn;
  const dropped = new Set(parts);
  return { ...turn, blocks: turn.blocks.filter((each) => !("part" in each && each.part && dropped.has(each.part))) };
}

/** Null if there is no such call. */
export function replaceCall(turn: Turn, call_id: string, make: (block: CallBlock) => CallBlock): Turn | null {
  const place = turn.blocks.findLastIndex((each) => each.type === "call" && each.call_id === call_id);
  const found = turn.blocks[place];
  return found?.type === "call" ? { ...turn, blocks: turn.blocks.with(place, make(found)) } : null;
}

export function newCall(call_id: string, tool: string, part: string | null): CallBlock {
  return { type: "call", call_id, tool, part, state: "asked", is_unknown: false, files: [], artifacts: [] };
}

/** Nothing of a turn that is over is still being said, and no call of it still runs. */
export function closed(turn: Turn, end: string): Turn {
  const blocks = turn.blocks.map((each): Block => {
    if (each.type === "call" && each.state !== "ended") {
      // Only a call of the agent's output has no end of its own; another one did not run to its end.
      const isOutput = end === "turn.completed" && each.state === "asked";
      return { ...each, state: "ended", outcome: isOutput ? "success" : null, reason: null };
    }
    return "is_open" in each && each.is_open ? { ...each, is_open: false } : each;
  });
  return { ...turn, blocks };
}
