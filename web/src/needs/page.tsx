// Everything that waits for a person, over all chats: decided where it stands.
import { BellRing, PartyPopper } from "lucide-react";
import { Link } from "wouter";
import { words } from "../api/problems";
import type { Task } from "../api/types";
import { RequestCard } from "../chat/request";
import { SettleTask } from "../chat/settle";
import { useRequests } from "../queries";
import { nameOf } from "../tasks/bits";
import { unknown } from "../tasks/live";
import { useTasks } from "../tasks/queries";
import { Button } from "../ui/button";
import { Nothing, Refused } from "../ui/empty";
import { Frame, Waiting } from "../ui/frame";
import { Ago } from "../ui/time";
import { useNotices } from "./notices";

export default function NeedsPage() {
  const { data, error, isPending } = useRequests();
  const failed = useTasks({ state: "failed" }, 100);
  const items = data?.items ?? [];
  const open = (failed.data?.items ?? []).filter(unknown);
  const { state, ask } = useNotices();
  return (
    <Frame
      title="Needs you"
      about="What your agents cannot go on with alone, over all your chats."
      actions={
        state === "default" ? (
          <Button onClick={ask}>
            <BellRing className="size-4" />
            Notify me
          </Button>
        ) : state === "granted" ? (
          <span className="text-sm text-muted">You are notified while this page is open.</span>
        ) : null
      }
    >
      {error && <Refused>{words(error)}</Refused>}
      {isPending && <Waiting />}
      <ul className="space-y-4" aria-label="What waits for you">
        {items.map((each) => (
          <Item key={each.id} task={each} />
        ))}
      </ul>
      {open.length > 0 && (
        <section className="space-y-4">
          <h2 className="text-sm font-semibold">It is not known what these have done</h2>
          <ul className="space-y-4" aria-label="Interrupted work">
            {open.map((each) => (
              <Item key={each.id} task={each} />
            ))}
          </ul>
        </section>
      )}
      {data && items.length + open.length === 0 && (
        <Nothing title="Nothing waits for you" icon={<PartyPopper className="size-6" />}>
          Approvals, questions and connections that your agents ask for will stand here, and their number in the name of
          this tab.
        </Nothing>
      )}
    </Frame>
  );
}

function Item({ task }: { task: Task }) {
  const asked = task.request?.asked_at ?? task.ended_at ?? task.created_at;
  return (
    <li className="space-y-3 rounded-2xl border border-line bg-panel p-4 text-sm" data-task={task.id}>
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <Link to={`/tasks/${task.id}`} className="font-medium hover:underline">
          {nameOf(task)}
        </Link>
        {task.tool && task.tool !== nameOf(task) && <span className="font-mono text-xs text-muted">{task.tool}</span>}
        <span className="text-xs text-muted">
          <Ago at={asked} />
        </span>
        <Link to={`/sessions/${task.session_id}`} className="ms-auto text-xs text-accent underline">
          Open the chat
        </Link>
      </div>
      {task.state === "awaiting_input" ? <RequestCard task={task} /> : <SettleTask task={task} />}
    </li>
  );
}
