// Messages that wait: shown above the composer until the model is told them. They can be changed and taken back.
import { Check, Clock, Paperclip, Pencil, RotateCcw, X } from "lucide-react";
import { useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { Waiting } from "../log/view";
import type { Pending } from "../store";
import { IconButton } from "../ui/button";
import { drop, sendAgain } from "./send";

const MODES: Record<string, string> = {
  steer: "heard at the next step",
  queue: "answered after this",
  interrupt: "stops this first",
};

type Props = { session_id: string; inbox: readonly Waiting[]; pending: readonly Pending[]; isBegun: boolean };

/** `isBegun`: the turn that is asked for runs; before that, nothing has a next step. */
export function Chips({ session_id, inbox, pending, isBegun }: Props) {
  if (inbox.length === 0 && pending.length === 0) return null;
  const many = inbox.filter((each) => each.kind === "message").length > 1;
  return (
    <ul className="space-y-1.5" aria-label="Waiting messages">
      {inbox.map((each) =>
        each.kind === "message" ? (
          <Chip key={each.input_id} session_id={session_id} waiting={each} isBegun={isBegun} many={many} />
        ) : (
          <li key={each.input_id} className="flex items-center gap-2 px-3 text-xs text-muted" data-waiting={each.kind}>
            <Clock className="size-3.5" />
            {each.kind === "wake" ? "News of a background task waits to be told." : "Something waits to be told."}
          </li>
        ),
      )}
      {pending.map((each) => (
        <Unsent key={each.key} session_id={session_id} pending={each} />
      ))}
    </ul>
  );
}

const FRAME = "flex items-center gap-2 rounded-xl border border-line bg-soft/70 py-1 ps-3 pe-1 text-sm";

interface ChipProps {
  session_id: string;
  waiting: Waiting;
  isBegun: boolean;
  many: boolean;
}

function Chip({ session_id, waiting, isBegun, many }: ChipProps) {
  const [edited, setEdited] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const url = `sessions/${session_id}/inbox/${waiting.input_id}`;
  const run = async (action: Promise<unknown>) => {
    setRefused(null);
    try {
      await action;
      setEdited(null);
    } catch (error) {
      setRefused(words(error));
    }
  };
  const save = () => {
    if (edited?.trim()) void run(api.patch(url, { text: edited.trim() }));
  };
  return (
    <li className={FRAME} data-waiting="message" data-input={waiting.input_id}>
      <Clock className="size-3.5 shrink-0 text-muted" />
      {edited === null ? (
        <span className="min-w-0 flex-1 truncate" data-text>
          {waiting.text}
        </span>
      ) : (
        <input
          // biome-ignore lint/a11y/noAutofocus: it was asked for
          autoFocus
          value={edited}
          aria-label="The waiting message"
          onChange={(event) => setEdited(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") save();
            if (event.key === "Escape") setEdited(null);
          }}
          className="min-w-0 flex-1 bg-transparent outline-none"
        />
      )}
      <span className={`shrink-0 text-xs ${refused ? "text-bad" : "text-muted"}`}>
        {refused ?? (
          <>
            {many && waiting.place != null && <span data-place>{`${waiting.place}. `}</span>}
            {(isBegun ? MODES[waiting.mode ?? ""] : "waits to begin") ?? "waits"}
          </>
        )}
      </span>
      {edited === null ? (
        <IconButton label="Edit the waiting message" className="!size-7" onClick={() => setEdited(waiting.text)}>
          <Pencil className="size-3.5" />
        </IconButton>
      ) : (
        <IconButton label="Save the waiting message" className="!size-7" onClick={save}>
          <Check className="size-3.5" />
        </IconButton>
      )}
      <IconButton label="Take it back" className="!size-7" onClick={() => void run(api.delete(url))}>
        <X className="size-3.5" />
      </IconButton>
    </li>
  );
}

function Unsent({ session_id, pending }: { session_id: string; pending: Pending }) {
  return (
    <li className={FRAME} data-waiting="unsent">
      <span className="min-w-0 flex-1 truncate" data-text>
        {pending.text}
      </span>
      {pending.files.length > 0 && <Paperclip className="size-3.5 shrink-0 text-muted" />}
      {pending.error === null ? (
        <span className="pe-2 text-xs text-muted">sending…</span>
      ) : (
        <>
          <span role="alert" className="text-xs text-bad">
            Not sent: {pending.error}
          </span>
          <IconButton label="Send again" className="!size-7" onClick={() => void sendAgain(session_id, pending)}>
            <RotateCcw className="size-3.5" />
          </IconButton>
          <IconButton label="Discard" className="!size-7" onClick={() => drop(session_id, pending.key)}>
            <X className="size-3.5" />
          </IconButton>
        </>
      )}
    </li>
  );
}
