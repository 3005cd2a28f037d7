// Files that the server keeps: a picture as itself, a text to look at as text, and everything to be saved.
import { Download, Eye, EyeOff, File } from "lucide-react";
import { useState } from "react";
import { address } from "../../api/client";
import { problemOf, words } from "../../api/problems";
import type { FileBlock, ShownFile } from "../../log/view";
import { IconButton } from "../../ui/button";
import { Code } from "../../ui/code";
import { Refused } from "../../ui/empty";

export function FileView({ block }: { block: FileBlock }) {
  return block.file ? <Shown file={block.file} /> : null;
}

const IMAGE = /^image\/(png|jpeg|gif|webp)$/;
const TEXT = /^(text\/.*|application\/(json|xml|yaml|x-ndjson|javascript|sql|toml)|.*\+(json|xml))$/;
const MOST = 64 * 1024;

/** Only what the server keeps is ever asked for. Of a page, a drawing or a script its text is shown: it can do nothing. */
export function Shown({ file }: { file: ShownFile }) {
  const name = file.name ?? file.media_type;
  if (!file.id) return <Label name={name} bytes={file.bytes} />;
  const href = address(`files/${file.id}`);
  if (IMAGE.test(file.media_type)) return <Picture href={href} name={name} bytes={file.bytes} />;
  return <Document href={href} name={name} file={file} />;
}

function Picture({ href, name, bytes }: { href: string; name: string; bytes: number }) {
  const [isLost, setLost] = useState(false);
  return (
    <figure className="w-fit max-w-full space-y-1" data-file>
      {isLost ? (
        <Label name={name} bytes={bytes} />
      ) : (
        <img
          src={href}
          alt={name}
          loading="lazy"
          className="max-h-96 rounded-xl border border-line"
          onError={() => setLost(true)}
        />
      )}
      <figcaption className="flex items-center gap-1 text-xs text-muted">
        <span className="min-w-0 truncate">{name}</span>
        <Save href={href} name={name} />
      </figcaption>
    </figure>
  );
}

function Document({ href, name, file }: { href: string; name: string; file: ShownFile }) {
  const [text, setText] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const look = async () => {
    setRefused(null);
    try {
      setText(await beginningOf(href));
    } catch (error) {
      setRefused(words(error));
    }
  };
  return (
    <div className={`max-w-full space-y-2 ${text === null ? "w-fit" : "w-full"}`} data-file>
      <div className="flex w-fit max-w-full items-center gap-1">
        <Label name={name} bytes={file.bytes} />
        {TEXT.test(file.media_type) && (
          <IconButton
            label={text === null ? `Look at ${name}` : `Close ${name}`}
            aria-expanded={text !== null}
            onClick={() => (text === null ? void look() : setText(null))}
          >
            {text === null ? <Eye className="size-4" /> : <EyeOff className="size-4" />}
          </IconButton>
        )}
        <Save href={href} name={name} />
      </div>
      {refused && <Refused>{refused}</Refused>}
      {text !== null && (
        <div className="max-h-96 overflow-auto" data-preview-of={name}>
          <Code code={text || "It is empty."} language={file.media_type.includes("json") ? "json" : ""} />
          {file.bytes > MOST && <p className="text-xs text-muted">This is its beginning: save it to see the rest.</p>}
        </div>
      )}
    </div>
  );
}

/** Asked for as a range: a file may be large, and a page need not hold it. */
async function beginningOf(href: string): Promise<string> {
  const response = await fetch(href, { headers: { Range: `bytes=0-${MOST - 1}` } });
  if (response.status === 416) return "";
  if (!response.ok) throw await problemOf(response);
  return (await response.text()).slice(0, MOST);
}

function Save({ href, name }: { href: string; name: string }) {
  return (
    <a
      href={href}
      download
      aria-label={`Save ${name}`}
      title={`Save ${name}`}
      className="inline-grid size-8 shrink-0 place-items-center rounded-lg text-muted hover:bg-soft hover:text-ink"
    >
      <Download className="size-4" />
    </a>
  );
}

function Label({ name, bytes }: { name: string; bytes: number }) {
  return (
    <span className="inline-flex min-w-0 items-center gap-2 rounded-lg border border-line bg-panel px-3 py-1.5 text-sm">
      <File className="size-4 shrink-0 text-muted" />
      <span className="min-w-0 truncate">{name}</span>
      <span className="shrink-0 text-muted">{size(bytes)}</span>
    </span>
  );
}

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(0)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
