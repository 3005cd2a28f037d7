// The one place where events become what is shown. Pure: a view and an event give the next view. What has not changed
// is the same object, so that nothing is drawn twice. An event type without a case here does not compile.
import type { LogEvent } from "../api/types";
import { calls } from "./calls";
import { accepted, delivered, edited, removed } from "./inbox";
import { changedTask, closedRequest, openedRequest } from "./tasks";
import { parts, turns } from "./turns";
import type { View } from "./view";

export function reduce(view: View, event: LogEvent): View {
  if (event.number === null || event.number <= view.as_of) return view;
  return { ...step(view, event), as_of: event.number, last_at: event.at };
}

export function reduceAll(view: View, events: readonly LogEvent[]): View {
  return events.reduce(reduce, view);
}

function step(view: View, event: LogEvent): View {
  switch (event.type) {
    case "session.created":
      return view;
    case "session.changed":
      return { ...view, session: { ...view.session, ...(event.data as object) } };
    case "session.held":
      return { ...view, session: { ...view.session, is_held: true, state: "held" } };
    case "session.resumed":
      return { ...view, session: { ...view.session, is_held: false, state: "idle" } };
    case "session.flagged":
      return turns.noted(view, event, "flagged", event.data.message ?? event.data.reason);
    case "session.deleted":
      return { ...view, is_deleted: true };
    case "input.accepted":
      return accepted(view, event);
    case "input.edited":
      return edited(view, event);
    case "input.removed":
      return removed(view, event);
    case "input.delivered":
      return delivered(view, event);
    case "turn.queued":
      return turns.queued(view, event);
    case "turn.started":
    case "turn.resumed":
      return turns.started(view, event);
    case "turn.completed":
    case "turn.failed":
    case "turn.stopped":
      return turns.ended(view, event);
    case "part.started":
      return parts.started(view, event);
    case "part.delta":
      return parts.grew(view, event);
    case "part.ended":
      return parts.ended(view, event);
    case "response.completed":
      return turns.answered(view, event);
    case "response.dropped":
      return turns.dropped(view, event);
    case "call.started":
      return calls.started(view, event);
    case "call.waiting":
      return calls.waiting(view, event);
    case "call.progress":
      return calls.progressed(view, event);
    case "call.settled":
      return calls.settled(view, event);
    case "call.ended":
      return calls.ended(view, event);
    case "history.compacted":
      return turns.noted(view, event, "compacted", event.data.reason ?? "");
    case "task.created":
    case "task.changed":
    case "task.ended":
      return changedTask(view, event.data.task);
    case "request.opened":
      return openedRequest(view, event);
    case "request.closed":
      return closedRequest(view, event);
    case "schedule.created":
    case "schedule.changed":
    case "schedule.paused":
    case "schedule.fired":
    case "schedule.skipped":
    case "schedule.deleted":
      return view; // a schedule belongs to an owner: its page asks for it
    case "stream.opened":
    case "stream.live":
    case "stream.lagged":
    case "stream.expired":
    case "task.output":
      return view;
    default:
      return unknown(view, event);
  }
}

/** A server may be newer than its page: what it tells besides is passed over. */
function unknown(view: View, _: never): View {
  return view;
}
