// A new schedule, with its next five times before it is made.
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import { client, useSessions } from "../queries";
import { titleOf } from "../sessions/title";
import { useAction } from "../ui/action";
import { Button } from "../ui/button";
import { Refused } from "../ui/empty";
import { Choice, Field } from "../ui/field";
import { Card } from "../ui/frame";
import { bodyOf, type Draft, here, inZone, timeOf } from "./words";

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const HINTS = {
  cron: "Minute, hour, day, month, day of the week: 0 8 * * 1-5 is each working day at eight.",
  at: "Such as 2027-01-31T08:00.",
  delay: "Such as in 20 minutes.",
};
const EXAMPLES = { cron: "0 8 * * *", at: "2027-01-31T08:00", delay: "in 20 minutes" };

function begin(session: string | undefined): Draft {
  return {
    what: "text",
    session_id: session ?? "",
    text: "",
    tool: "",
    args: "",
    title: "",
    when: "cron",
    time: "",
    zone: ZONE,
    missed: "run_once",
    overlap: "skip",
    condition: "changed",
    path: "",
    value: "",
  };
}

export function Make({ session, done }: { session: string | undefined; done: () => void }) {
  const [draft, setDraft] = useState(() => begin(session));
  const sessions = useSessions("", false).data?.items ?? [];
  const { isBusy, refused, run } = useAction();
  const of = (name: keyof Draft) => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }),
  });
  const make = () =>
    run(async () => {
      await api.post("schedules", bodyOf({ ...draft, session_id: draft.session_id || (sessions[0]?.id ?? "") }));
      await client.invalidateQueries({ queryKey: ["schedules"] });
      done();
    });
  if (sessions.length === 0)
    return (
      <Card>
        <p className="text-sm text-muted">A schedule belongs to a chat. Begin one first.</p>
      </Card>
    );
  return (
    <Card title="A new schedule">
      <form
        className="grid gap-4 sm:grid-cols-2"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <Choice
          label="In the chat"
          choices={sessions.map((each) => [each.id, titleOf(each)] as const)}
          {...of("session_id")}
        />
        <Choice
          label="It"
          choices={[
            ["text", "says something to the agent"],
            ["tool", "runs a tool"],
            ["monitor", "runs a tool until something is so"],
          ]}
          {...of("what")}
        />
        {draft.what === "text" ? (
          <div className="sm:col-span-2">
            <Field label="What it says" required placeholder="Tell me what is new" {...of("text")} />
          </div>
        ) : (
          <>
            <Field label="Tool" required placeholder="fetch_report" {...of("tool")} />
            <Field label="Arguments" placeholder='{"day": "today"}' hint="JSON" {...of("args")} />
          </>
        )}
        {draft.what === "monitor" && (
          <>
            <Choice
              label="Until its result"
              choices={[
                ["changed", "has changed"],
                ["equals", "equals"],
                ["matches", "matches a pattern"],
                ["above", "is above"],
                ["below", "is below"],
              ]}
              {...of("condition")}
            />
            {draft.condition !== "changed" && (
              <Field
                label="This"
                required
                hint={draft.condition === "matches" ? "A regular expression." : "JSON"}
                {...of("value")}
              />
            )}
            <Field
              label="Which part of the result"
              placeholder="all of it"
              hint="Such as jobs[0].state."
              {...of("path")}
            />
          </>
        )}
        <Choice
          label="When"
          choices={[
            ["cron", "again and again"],
            ["at", "at one time"],
            ["delay", "after a while, once"],
          ]}
          {...of("when")}
        />
        <Field label="Time" required placeholder={EXAMPLES[draft.when]} hint={HINTS[draft.when]} {...of("time")} />
        <Field label="Zone" required {...of("zone")} />
        <Field label="Name" placeholder="may be left out" {...of("title")} />
        <Choice
          label="Times missed while the server is down"
          choices={[
            ["run_once", "fire once for all of them"],
            ["skip", "are left out"],
            ["run_all", "fire each, up to 100"],
          ]}
          {...of("missed")}
        />
        <Choice
          label="If the fire before is not over"
          choices={[
            ["skip", "leave this one out"],
            ["queue", "wait for it"],
            ["allow", "fire all the same"],
          ]}
          {...of("overlap")}
        />
        <div className="sm:col-span-2">
          <Preview draft={draft} />
        </div>
        {refused && (
          <div className="sm:col-span-2">
            <Refused>{refused}</Refused>
          </div>
        )}
        <div className="flex justify-end gap-2 sm:col-span-2">
          <Button onClick={done}>Leave it</Button>
          <Button kind="primary" type="submit" disabled={isBusy}>
            Make it
          </Button>
        </div>
      </form>
    </Card>
  );
}

/** The server says when: it knows the zones. */
function Preview({ draft }: { draft: Draft }) {
  const time = useDeferredValue(JSON.stringify(timeOf(draft)));
  const { data, error } = useQuery({
    queryKey: ["preview", time],
    queryFn: () =>
      api.post<{ times: string[]; utc: string[]; zone: string }>("schedules/preview", {
        ...JSON.parse(time),
        count: 5,
      }),
    enabled: time !== "null",
    retry: false,
  });
  return (
    <div className="rounded-xl bg-soft px-3 py-2.5 text-sm" aria-live="polite" data-preview={data?.times.length ?? 0}>
      {time === "null" ? (
        <span className="text-muted">Its next times stand here once you have said when.</span>
      ) : error ? (
        <span className="text-warn">{words(error)}</span>
      ) : (
        <>
          <p className="text-xs text-muted">Its next times</p>
          <ol>
            {data?.times.map((each) => (
              <li key={each} className="tabular-nums">
                {inZone(each)}
                {draft.zone !== ZONE && <span className="text-muted"> · {here(each)} here</span>}
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  );
}
