// Where messages are written. It never locks: while the agent works, a message steers it, waits, or interrupts.
import { ArrowUp, ChevronDown, CornerDownRight, ListPlus, OctagonX, Square } from "lucide-react";
import { type KeyboardEvent, useEffect, useRef } from "react";
import type { WhenBusy } from "../api/types";
import { AttachButton, Attached } from "../files/attached";
import type { Chosen, Files } from "../files/chosen";
import { Menu } from "../ui/menu";
import { useDraft } from "./drafts";

type Props = {
  draft: string;
  placeholder: string;
  isBusy: boolean;
  files: Files;
  onSend: (text: string, mode: WhenBusy, files: readonly Chosen[]) => Promise<boolean> | undefined;
  onStop?: () => void;
};

export function Composer({ draft, placeholder, isBusy, files, onSend, onStop }: Props) {
  const [text, setText] = useDraft(draft);
  const area = useRef<HTMLTextAreaElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it grows with what is written
  useEffect(() => fit(area.current), [text]);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) area.current?.focus({ preventScroll: true });
  }, []);

  const isEmpty = !text.trim() && files.items.length === 0;
  const submit = (mode: WhenBusy) => {
    const said = text.trim();
    const { items } = files;
    if (!said && items.length === 0) return;
    setText("");
    files.put([]);
    void onSend(said, mode, items)?.then((isSent) => {
      if (isSent) return;
      setText(said);
      files.put(items);
    });
    area.current?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape" && isBusy && !text) onStop?.();
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit(event.metaKey || event.ctrlKey ? "queue" : "steer");
  };

  return (
    <form
      className="rounded-2xl border border-line bg-panel shadow-sm transition-shadow focus-within:border-accent focus-within:shadow-md"
      onSubmit={(event) => {
        event.preventDefault();
        submit("steer");
      }}
    >
      <Attached files={files} />
      <textarea
        ref={area}
        rows={1}
        value={text}
        aria-label="Message"
        placeholder={placeholder}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
        onPaste={(event) => {
          const pasted = [...event.clipboardData.files];
          if (pasted.length === 0) return;
          event.preventDefault();
          files.add(pasted);
        }}
        className="block max-h-[40vh] w-full resize-none bg-transparent px-4 pt-3 pb-1 outline-none placeholder:text-muted"
      />
      <div className="flex items-center gap-2 px-2 pb-2">
        <AttachButton files={files} />
        <span className="flex-1 truncate text-xs text-muted">
          {isBusy ? "Enter steers · Ctrl+Enter waits its turn · Esc stops" : "Enter sends · Shift+Enter begins a line"}
        </span>
        {isBusy && onStop && (
          <button
            type="button"
            onClick={onStop}
            aria-label="Stop"
            title="Stop"
            className="inline-flex h-9 items-center gap-1.5 rounded-xl border border-line px-3 text-sm font-medium hover:bg-soft"
          >
            <Square className="size-3.5 fill-current" />
            Stop
          </button>
        )}
        <div className="flex">
          <button
            type="submit"
            disabled={isEmpty}
            aria-label={isBusy ? "Steer" : "Send"}
            title={isBusy ? "Steer" : "Send"}
            className={`inline-flex h-9 items-center gap-1.5 bg-accent px-3 text-sm font-medium text-on-accent disabled:bg-soft disabled:text-muted ${isBusy ? "rounded-s-xl" : "rounded-xl"}`}
          >
            <ArrowUp className="size-4" />
            {isBusy ? "Steer" : "Send"}
          </button>
          {isBusy && <Modes isOn={!isEmpty} choose={submit} />}
        </div>
      </div>
    </form>
  );
}

function Modes({ isOn, choose }: { isOn: boolean; choose: (mode: WhenBusy) => void }) {
  return (
    <Menu
      trigger={
        <button
          type="button"
          disabled={!isOn}
          aria-label="How to send"
          title="How to send"
          className="inline-grid h-9 w-8 place-items-center rounded-e-xl border-s border-panel bg-accent text-on-accent disabled:bg-soft disabled:text-muted"
        >
          <ChevronDown className="size-4" />
        </button>
      }
      items={[
        { label: "Steer", hint: "Heard at the next step", icon: <CornerDownRight />, onClick: () => choose("steer") },
        { label: "Queue", hint: "Answered after this", icon: <ListPlus />, onClick: () => choose("queue") },
        {
          label: "Interrupt",
          hint: "Stops this, then says it",
          icon: <OctagonX />,
          onClick: () => choose("interrupt"),
        },
      ]}
    />
  );
}

function fit(area: HTMLTextAreaElement | null): void {
  if (area === null) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}
