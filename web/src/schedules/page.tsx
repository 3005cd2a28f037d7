// What happens by itself: schedules and monitors, when they fire next, and what became of each time.
import { useQuery } from "@tanstack/react-query";
import { CalendarClock, Plus } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { api, type Page } from "../api/client";
import { words } from "../api/problems";
import type { Schedule } from "../api/types";
import { Button } from "../ui/button";
import { Nothing, Refused } from "../ui/empty";
import { Frame, Rows, Waiting } from "../ui/frame";
import { Make } from "./make";
import { Row } from "./row";

export default function SchedulesPage() {
  const [params] = useSearchParams();
  const session = params.get("session") ?? undefined;
  const { data, error, isPending } = useQuery({
    queryKey: ["schedules", "list", session],
    queryFn: () => api.get<Page<Schedule>>("schedules", { session, limit: 200 }),
  });
  const [isMaking, setMaking] = useState(false);
  const items = data?.items ?? [];
  const going = items.filter((each) => each.state !== "ended");
  const ended = items.filter((each) => each.state === "ended");
  return (
    <Frame
      title="Schedules"
      about="What is said or run at its times, and monitors that watch."
      actions={
        <Button kind="primary" aria-expanded={isMaking} onClick={() => setMaking(!isMaking)}>
          <Plus className="size-4" />
          New schedule
        </Button>
      }
    >
      {error && <Refused>{words(error)}</Refused>}
      {isMaking && <Make session={session} done={() => setMaking(false)} />}
      {isPending && <Waiting />}
      {going.length > 0 && (
        <Rows label="Schedules">
          {going.map((each) => (
            <Row key={each.id} schedule={each} />
          ))}
        </Rows>
      )}
      {ended.length > 0 && (
        <section className="space-y-3">
          <h2 className="text-sm font-semibold">Ended</h2>
          <Rows label="Ended schedules">
            {ended.map((each) => (
              <Row key={each.id} schedule={each} />
            ))}
          </Rows>
        </section>
      )}
      {data && items.length === 0 && !isMaking && (
        <Nothing title="Nothing is scheduled" icon={<CalendarClock className="size-6" />}>
          Make one here, or ask in a chat whose agent has the tool for it: “every morning at eight, tell me what is
          new”.
        </Nothing>
      )}
    </Frame>
  );
}
