// Values of tools: as one line, and whole. What is too large for a page is a beginning and a link.
import { address, BASE } from "../api/client";
import { parsed } from "../log/values";
import { isPreview } from "../log/view";
import { Code } from "../ui/code";
import { size } from "./blocks/file";

/** A few words that tell one call from another. */
export function digest(given: unknown): string {
  const value = parsed(given);
  if (value === null || value === undefined) return "";
  if (isPreview(value)) return `${value.$preview}…`;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.map(digest).join(", ");
  return Object.entries(value)
    .map(
      ([name, each]) => `${name}: ${typeof each === "object" && each !== null ? JSON.stringify(each) : String(each)}`,
    )
    .join(", ");
}

export function Value({ label, value: given }: { label: string; value: unknown }) {
  const value = parsed(given);
  if (value === null || value === undefined || value === "") return null;
  return (
    <div className="space-y-1">
      <div className="text-xs font-medium text-muted">{label}</div>
      {isPreview(value) ? (
        <>
          <Code code={`${value.$preview}…`} language="" />
          <Whole href={value.href} bytes={value.bytes} />
        </>
      ) : typeof value === "string" ? (
        <Code code={value} language="" />
      ) : (
        <Code code={JSON.stringify(value, null, 2)} language="json" />
      )}
    </div>
  );
}

export function Whole({ href, bytes }: { href: string; bytes: number }) {
  const url = href.startsWith("/v1/") ? address(href.slice(4)) : new URL(href, BASE).href;
  return (
    <a href={url} className="text-sm text-accent underline" download>
      The whole ({size(bytes)})
    </a>
  );
}
