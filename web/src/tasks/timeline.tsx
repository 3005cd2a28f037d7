// What happened to a task, and when.
import type { Task } from "../api/types";
import { clock, span } from "../ui/time";

type Point = { at: string; said: string; by?: string | null };

const CLOSED: Record<string, string> = {
  answered: "answered",
  approved: "approved",
  refused: "refused",
  withdrawn: "no longer asked",
  expired: "not answered in time",
  ended: "over before it was answered",
};

export function pointsOf(task: Task): Point[] {
  const { request, settled, parked } = task;
  const points: Point[] = [{ at: task.created_at, said: task.parked ? "became background work" : "set going" }];
  if (task.started_at)
    points.push({ at: task.started_at, said: task.attempt > 1 ? `started, attempt ${task.attempt}` : "started" });
  if (request) {
    points.push({
      at: request.asked_at,
      said: `asked for ${request.kind === "approval" ? "an approval" : request.kind === "question" ? "an answer" : "a connection"}`,
    });
    if (request.closed)
      points.push({
        at: request.closed.at,
        said: CLOSED[request.closed.how] ?? request.closed.how,
        by: request.closed.by,
      });
  }
  if (task.ended_at) points.push({ at: task.ended_at, said: ENDS[task.state] ?? "ended" });
  if (settled?.at)
    points.push({ at: settled.at, said: `somebody said that it ${SETTLED[settled.verdict]}`, by: settled.by });
  const reason = (parked as { reason?: string } | null | undefined)?.reason;
  const first = points[0];
  if (reason && first) first.said = REASONS[reason] ?? first.said;
  return points.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

const REASONS: Record<string, string> = {
  budget: "took long: went on in the background",
  steering: "went on in the background because somebody wrote",
  stop: "went on in the background when the turn was stopped",
};
const ENDS: Record<string, string> = { succeeded: "done", failed: "failed", canceled: "cancelled" };
const SETTLED: Record<string, string> = { worked: "worked", failed: "did not work", try_again: "is to be tried again" };

export function Timeline({ task }: { task: Task }) {
  const points = pointsOf(task);
  return (
    <ol className="space-y-2 text-sm">
      {points.map((each, index) => {
        const before = points[index - 1];
        const after = before ? Date.parse(each.at) - Date.parse(before.at) : 0;
        return (
          <li key={`${each.at}${each.said}`} className="flex gap-3">
            <time
              dateTime={each.at}
              title={new Date(each.at).toLocaleString()}
              className="w-[4.5rem] shrink-0 whitespace-nowrap text-muted tabular-nums"
            >
              {clock(each.at)}
            </time>
            <span className="min-w-0">
              {each.said}
              {each.by && <span className="text-muted"> by {each.by}</span>}
              {after >= 1_000 && <span className="text-muted"> (+{span(after)})</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
