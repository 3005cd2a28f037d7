import { File } from "lucide-react";
import { address } from "../../api/client";
import type { FileBlock, ShownFile } from "../../log/view";

export function FileView({ block }: { block: FileBlock }) {
  return block.file ? <Shown file={block.file} /> : null;
}

/** A picture as itself, anything else as a link to it. Only what the server keeps is ever asked for. */
export function Shown({ file }: { file: ShownFile }) {
  const name = file.name ?? file.media_type;
  if (!file.id) return <Label name={name} bytes={file.bytes} />;
  const href = address(`files/${file.id}`);
  if (/^image\/(png|jpeg|gif|webp)$/.test(file.media_type))
    return (
      <img src={href} alt={name} loading="lazy" className="max-h-96 rounded-xl border border-line" data-block="file" />
    );
  return (
    <a href={href} download data-block="file">
      <Label name={name} bytes={file.bytes} />
    </a>
  );
}

function Label({ name, bytes }: { name: string; bytes: number }) {
  return (
    <span className="inline-flex items-center gap-2 rounded-lg border border-line bg-panel px-3 py-1.5 text-sm">
      <File className="size-4 text-muted" />
      {name}
      <span className="text-muted">{size(bytes)}</span>
    </span>
  );
}

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(0)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
