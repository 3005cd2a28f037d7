// Tool calls of a turn, from asked to ended.
import type { LogEvent } from "../api/types";
import { append, newCall, replaceCall } from "./blocks";
import { change } from "./turns";
import { filesIn, shown } from "./values";
import type { CallBlock, View } from "./view";

type Of<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;
type More = { narration?: string | null; is_unknown?: boolean };

export const calls = {
  /** A call may be run again after a crash: it begins anew. */
  started(view: View, event: Of<"call.started">): View {
    const { call_id, tool, args, narration } = event.data as typeof event.data & More;
    return call(view, event.turn_id, call_id, tool, (block) => ({
      ...newCall(call_id, tool, block.part ?? null),
      state: "running",
      args: shown(args),
      narration: narration ?? null,
      started_at: event.at,
    }));
  },
  waiting(view: View, event: Of<"call.waiting">): View {
    const { call_id, reason } = event.data;
    return known(view, event.turn_id, call_id, (block) => ({ ...block, state: "waiting", reason }));
  },
  progressed(view: View, event: Of<"call.progress">): View {
    const progress = event.data.progress ?? null;
    return known(view, event.turn_id, event.data.call_id, (block) => ({ ...block, progress }));
  },
  settled(view: View, event: Of<"call.settled">): View {
    const { call_id, verdict, by, note } = event.data;
    const settled = { verdict: verdict as "worked", by, note: note ?? "", at: event.at };
    return known(view, event.turn_id, call_id, (block) => ({ ...block, settled }));
  },
  ended(view: View, event: Of<"call.ended">): View {
    const { call_id, tool, outcome, part, task_id, content, artifacts, narration, is_unknown } =
      event.data as typeof event.data & More;
    return call(view, event.turn_id, call_id, tool, (block) => ({
      ...block,
      state: "ended",
      outcome,
      is_unknown: outcome === "interrupted" && (is_unknown ?? true),
      result: shown(part.content),
      files: filesIn(part.content, content),
      artifacts: (artifacts as CallBlock["artifacts"] | undefined) ?? [],
      task_id: task_id ?? null,
      reason: null,
      narration: narration ?? block.narration ?? null,
      ended_at: event.at,
    }));
  },
};

type Make = (block: CallBlock) => CallBlock;

function known(view: View, id: string | null, call_id: string, make: Make): View {
  return change(view, id, (turn) => replaceCall(turn, call_id, make) ?? turn);
}

/** A call that nothing asked for in this attempt gets a block of its own. */
function call(view: View, id: string | null, call_id: string, tool: string, make: Make): View {
  return change(
    view,
    id,
    (turn) => replaceCall(turn, call_id, make) ?? append(turn, make(newCall(call_id, tool, null))),
  );
}
