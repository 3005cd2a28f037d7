// What a person said, where the model was told it.
import { Pencil } from "lucide-react";
import { memo, useState } from "react";
import { useLocation } from "wouter";
import { words } from "../../api/problems";
import { AttachButton, Attached } from "../../files/attached";
import { known, useFiles } from "../../files/chosen";
import type { MessageBlock } from "../../log/view";
import { useStore } from "../../store";
import { Button, IconButton } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Refused } from "../../ui/empty";
import { forkBefore, send } from "../send";
import { Shown } from "./file";

type Props = { session_id: string; turn_id: string; block: MessageBlock };

export const MessageBubble = memo(function MessageBubble({ session_id, turn_id, block }: Props) {
  const [isEdited, setEdited] = useState(false);
  if (isEdited) return <Edit session_id={session_id} turn_id={turn_id} block={block} close={() => setEdited(false)} />;
  return (
    <div className="group relative flex flex-col items-end gap-1" data-block="message">
      <div
        className="max-w-[85%] rounded-2xl rounded-ee-md bg-tint px-4 py-2.5 [overflow-wrap:anywhere] whitespace-pre-wrap"
        data-text
      >
        {block.text}
      </div>
      {block.files.map((each) => (
        <Shown key={each.id ?? each.name} file={each} />
      ))}
      <div className="absolute top-full right-0 z-10 flex opacity-0 transition-opacity group-focus-within:opacity-100 group-hover:opacity-100">
        <CopyButton text={block.text} />
        <IconButton label="Edit: goes on from here in a new chat" onClick={() => setEdited(true)}>
          <Pencil className="size-4" />
        </IconButton>
      </div>
    </div>
  );
});

type EditProps = { session_id: string; turn_id: string; block: MessageBlock; close: () => void };

function Edit({ session_id, turn_id, block, close }: EditProps) {
  const session = useStore((state) => state.views[session_id]?.session);
  const [text, setText] = useState(block.text);
  const files = useFiles(block.files.flatMap(known));
  const [refused, setRefused] = useState<string | null>(null);
  const [, go] = useLocation();
  const save = async () => {
    if (session === undefined) return;
    try {
      const made = await forkBefore(session, turn_id);
      void send(made.id, text, "steer", files.items);
      go(`/sessions/${made.id}`);
    } catch (error) {
      setRefused(words(error));
    }
  };
  return (
    <div className="ms-auto w-full max-w-[85%] space-y-2 rounded-2xl border border-line bg-panel p-3">
      <Attached files={files} />
      <textarea
        value={text}
        rows={Math.min(8, text.split("\n").length + 1)}
        aria-label="The message, edited"
        onChange={(event) => setText(event.target.value)}
        className="w-full resize-y bg-transparent outline-none"
      />
      {refused && <Refused>{refused}</Refused>}
      <div className="flex items-center justify-end gap-2">
        <AttachButton files={files} />
        <span className="flex-1 text-xs text-muted">It goes on from here in a new chat; this one stays.</span>
        <Button onClick={close}>Cancel</Button>
        <Button kind="primary" disabled={!text.trim() && files.items.length === 0} onClick={() => void save()}>
          Send
        </Button>
      </div>
    </div>
  );
}
