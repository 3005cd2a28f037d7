// What goes with the message that is being written: a picture as itself, anything else by its name. And how it gets there.
import { Paperclip, X } from "lucide-react";
import { type DragEvent, type ReactNode, useRef, useState } from "react";
import { size } from "../chat/blocks/file";
import { IconButton } from "../ui/button";
import { type Chosen, type Files, MOST, useLocalUrl } from "./chosen";

export function Attached({ files }: { files: Files }) {
  if (files.items.length === 0) return null;
  return (
    <ul className="flex flex-wrap gap-2 px-3 pt-3" aria-label="Files that go with it">
      {files.items.map((each) => (
        <One key={each.key} file={each} remove={() => files.remove(each.key)} />
      ))}
      {files.items.length === MOST && <li className="self-center text-xs text-muted">No more than {MOST} at once.</li>}
    </ul>
  );
}

function One({ file, remove }: { file: Chosen; remove: () => void }) {
  const url = useLocalUrl(/^image\/(png|jpeg|gif|webp)$/.test(file.type) ? file.file : null);
  return (
    <li
      className="flex max-w-full items-center gap-2 rounded-lg border border-line bg-soft/70 py-1 ps-2 pe-1 text-sm"
      data-attached={file.name}
    >
      {url ? (
        <img src={url} alt="" className="size-8 rounded object-cover" />
      ) : (
        <Paperclip className="size-4 shrink-0 text-muted" />
      )}
      <span className="min-w-0 max-w-56 truncate">{file.name}</span>
      <span className="shrink-0 text-xs text-muted">{size(file.bytes)}</span>
      <IconButton label={`Leave out ${file.name}`} className="!size-7" onClick={remove}>
        <X className="size-3.5" />
      </IconButton>
    </li>
  );
}

export function AttachButton({ files }: { files: Files }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        className="hidden"
        aria-label="Files"
        tabIndex={-1}
        onChange={({ target }) => {
          files.add(target.files ?? []);
          target.value = "";
        }}
      />
      <IconButton label="Add files: they can also be dropped or pasted" onClick={() => input.current?.click()}>
        <Paperclip className="size-4" />
      </IconButton>
    </>
  );
}

const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");

/** Files that are let fall on it go with the message; anything else that is dragged is none of its business. */
export function DropPlace({ files, className, children }: { files: Files; className: string; children: ReactNode }) {
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the same is done with a button in it
    <div
      className={`relative ${className}`}
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        files.add(event.dataTransfer.files);
      }}
    >
      {children}
      {isOver && (
        <div
          className="pointer-events-none absolute inset-2 z-30 grid place-items-center rounded-2xl border-2 border-dashed border-accent bg-panel/85 text-sm font-medium text-accent"
          data-drop
        >
          <span className="rounded-xl border border-line bg-panel px-4 py-2 shadow-md">
            Let go: they go with your message
          </span>
        </div>
      )}
    </div>
  );
}
