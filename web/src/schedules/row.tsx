// One schedule: what it does and when, and behind it what became of its times.
import { useQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { api, type Page } from "../api/client";
import { words } from "../api/problems";
import type { Fire, Schedule } from "../api/types";
import { Value } from "../chat/value";
import { client } from "../queries";
import { useAction } from "../ui/action";
import { Ask } from "../ui/ask";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";
import { Badge, Facts, type Tone } from "../ui/frame";
import { Ago } from "../ui/time";
import { here, inZone, sayFire, sayReason, timesOf } from "./words";

const TONES: Record<Schedule["state"], Tone> = { active: "good", paused: "warn", ended: "plain" };
const KINDS: Record<Schedule["kind"], string> = { message: "says", tool: "runs", monitor: "watches" };
const again = () => client.invalidateQueries({ queryKey: ["schedules"] });

export function Row({ schedule }: { schedule: Schedule }) {
  const [isOpen, setOpen] = useState(false);
  const name = schedule.title || schedule.text || schedule.tool || schedule.id;
  return (
    <li data-schedule={schedule.id} data-state={schedule.state}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-3 px-4 py-3 text-start hover:bg-soft/60"
      >
        <span className="min-w-0 flex-1">
          <span className="flex items-center gap-2">
            <span className="truncate text-sm font-medium">{name}</span>
            <Badge tone={TONES[schedule.state]}>{schedule.state}</Badge>
          </span>
          <span className="block truncate text-xs text-muted">
            {KINDS[schedule.kind]} · {timesOf(schedule)}
            {schedule.reason && ` · ${sayReason(schedule)}`}
          </span>
        </span>
        {schedule.next_at && schedule.state === "active" && (
          <span className="shrink-0 text-end text-xs text-muted">
            next
            <span className="block text-ink">{here(schedule.next_at)}</span>
          </span>
        )}
        <ChevronRight className={`size-4 shrink-0 text-muted transition-transform ${isOpen ? "rotate-90" : ""}`} />
      </button>
      {isOpen && <More schedule={schedule} />}
    </li>
  );
}

function More({ schedule }: { schedule: Schedule }) {
  const { isBusy, refused, run } = useAction();
  const act = (verb: string) => void run(() => api.post(`schedules/${schedule.id}/${verb}`).then(again));
  const error = schedule.last_error as { message?: string } | null | undefined;
  return (
    <div className="space-y-4 border-t border-line bg-soft/30 px-4 py-4">
      <div className="flex flex-wrap gap-2">
        {schedule.state === "active" && (
          <Button disabled={isBusy} onClick={() => act("pause")}>
            Pause
          </Button>
        )}
        {schedule.state === "paused" && (
          <Button disabled={isBusy} onClick={() => act("resume")}>
            Resume
          </Button>
        )}
        {schedule.state !== "ended" && (
          <Button disabled={isBusy} onClick={() => act("trigger")}>
            Fire now
          </Button>
        )}
        <Ask
          label="Delete"
          title="Delete this schedule?"
          about="It never fires again, and the list of its fires goes with it. What it has set going stays."
          yes="Delete"
          run={() => api.delete(`schedules/${schedule.id}`).then(again)}
        />
      </div>
      {refused && <Refused>{refused}</Refused>}
      {error && <Refused>The last look failed: {error.message ?? "it does not say why"}</Refused>}
      <Facts
        rows={[
          [
            "Next",
            schedule.next_at && `${inZone(schedule.next_at)} in ${schedule.zone} · ${here(schedule.next_at)} here`,
          ],
          ["Last", schedule.last_fired_at && <Ago key="last" at={schedule.last_fired_at} />],
          ["Says", schedule.text],
          ["Tool", schedule.tool],
          ["Missed times", MISSED[schedule.missed]],
          ["Still busy", OVERLAP[schedule.overlap]],
          ["Made by", schedule.made_by.kind === "model" ? "the agent" : (schedule.made_by.by ?? "a person")],
          [
            "Chat",
            <Link key="chat" to={`/sessions/${schedule.session_id}`} className="text-accent underline">
              open it
            </Link>,
          ],
          [
            "Task",
            schedule.task_id && (
              <Link key="task" to={`/tasks/${schedule.task_id}`} className="text-accent underline">
                open it
              </Link>
            ),
          ],
        ]}
      />
      <Value label="Waits until" value={schedule.condition} />
      <Value label="Last result" value={schedule.last_result} />
      <Fires schedule={schedule} />
    </div>
  );
}

const MISSED = { run_once: "fire once for all of them", skip: "are left out", run_all: "fire each, up to 100" };
const OVERLAP = { skip: "the next time is left out", queue: "the next time waits", allow: "both go on" };

/** Asked for again when the schedule has changed, and while something that has fired has not begun. */
function Fires({ schedule }: { schedule: Schedule }) {
  const { id, fired, updated_at } = schedule;
  const { data, error } = useQuery({
    queryKey: ["fires", id, fired, updated_at],
    queryFn: () => api.get<Page<Fire>>(`schedules/${id}/fires`, { limit: 30 }),
    placeholderData: (before) => before,
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ outcome }) => outcome === "fired" || outcome === "queued") ? 1_500 : false,
  });
  if (error) return <Refused>{words(error)}</Refused>;
  if (!data) return null;
  return (
    <section aria-label="Past fires">
      <h3 className="mb-1.5 text-xs font-medium text-muted">Past fires</h3>
      {data.items.length === 0 && <p className="text-sm text-muted">It has not fired yet.</p>}
      <ul className="space-y-1 text-sm">
        {data.items.map((each) => (
          <li key={each.number} className="flex flex-wrap gap-x-3" data-fire={each.outcome}>
            <time dateTime={each.due_at} className="w-36 shrink-0 text-muted tabular-nums">
              {inZone(each.due_at)}
            </time>
            <span className={each.outcome === "failed" ? "text-bad" : ""}>
              {sayFire(each)}
              {each.late_seconds >= 60 && ` · ${Math.round(each.late_seconds / 60)} min late`}
              {each.reason && <span className="text-muted"> · {each.detail ?? each.reason}</span>}
            </span>
            {each.task_id && (
              <Link to={`/tasks/${each.task_id}`} className="text-accent underline">
                its task
              </Link>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
