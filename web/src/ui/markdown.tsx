// Markdown from a model or a tool: text of others. Elements are made, never HTML; nothing is loaded from elsewhere.
import Markdown, { type MarkdownToJSX } from "markdown-to-jsx/react";
import { isValidElement, memo, type ReactNode } from "react";
import { Code } from "./code";

const SAFE = /^(https?:|mailto:)/i;

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : "";
}

function Link({ href, children }: { href?: string; children?: ReactNode }) {
  if (href === undefined || !SAFE.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

/** A picture from elsewhere would tell its server who reads this: a link to it. */
function Picture({ src, alt }: { src?: string; alt?: string }) {
  return <Link href={src}>{alt || src || "picture"}</Link>;
}

function Pre({ children }: { children?: ReactNode }) {
  const className = isValidElement<{ className?: string }>(children) ? (children.props.className ?? "") : "";
  const language = /(?:lang|language)-([\w+-]+)/.exec(className)?.[1] ?? "";
  return <Code code={textOf(children).replace(/\n$/, "")} language={language} />;
}

function Table({ children }: { children?: ReactNode }) {
  return (
    <div className="table" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  );
}

function Box({ checked }: { checked?: boolean }) {
  return <span>{checked ? "☑" : "☐"}</span>;
}

const OPTIONS: MarkdownToJSX.Options = {
  disableParsingRawHTML: true,
  forceBlock: true,
  forceWrapper: true,
  slugify: () => "",
  overrides: { a: Link, img: Picture, pre: Pre, table: Table, input: Box },
};
const STREAMING: MarkdownToJSX.Options = { ...OPTIONS, optimizeForStreaming: true };

export const Prose = memo(function Prose({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  return (
    <div className={`prose ${isOpen ? "caret-host" : ""}`}>
      <Markdown options={isOpen ? STREAMING : OPTIONS}>{text}</Markdown>
    </div>
  );
});
