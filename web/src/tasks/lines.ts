// Raw output as lines: colours that go on over lines, and progress that a program draws over itself.
import Anser from "anser";

export type Line = { text: string; before: string };
export type Span = { text: string; className: string; color?: string; background?: string };

const SGR = new RegExp(`${String.fromCharCode(27)}\\[([0-9;]*)m`, "g");
const OTHER = new RegExp(`${String.fromCharCode(27)}(\\[[0-9;?]*[A-Za-ln-z]|\\][^\\u0007]*(\\u0007|$))`, "g");

/** What a terminal would show of a line after what was written over it. */
function shown(line: string): string {
  const plain = line.replace(OTHER, "");
  let end = plain.length;
  while (end > 0 && plain[end - 1] === "\r") end--; // not by a pattern: many of them before a word would take its square
  const at = end > 0 ? plain.lastIndexOf("\r", end - 1) : -1;
  return plain.slice(at + 1, end);
}

/** The colours that still hold at the end of a line. */
function carried(before: string, line: string): string {
  let now = before;
  for (const [all, codes] of line.matchAll(SGR)) now = codes === "" || codes === "0" ? "" : (now + all).slice(-64);
  return now;
}

export function linesOf(text: string): Line[] {
  const parts = text.split("\n");
  if (parts.at(-1) === "") parts.pop();
  let before = "";
  return parts.map((each) => {
    const line = { text: shown(each), before };
    before = each.includes("\u001b") ? carried(before, each) : before;
    return line;
  });
}

export function spansOf({ text, before }: Line): Span[] {
  if (before === "" && !text.includes("\u001b")) return [{ text, className: "" }];
  return Anser.ansiToJson(before + text, { use_classes: true, remove_empty: true, json: true }).map((each) => {
    const marks = each.decorations.map((mark) => `ansi-${mark}`);
    const names = [named(each.fg, ""), named(each.bg, "on-"), ...marks].filter(Boolean);
    const span: Span = { text: each.content, className: names.join(" ") };
    if (each.fg_truecolor) span.color = `rgb(${each.fg_truecolor})`;
    if (each.bg_truecolor) span.background = `rgb(${each.bg_truecolor})`;
    return span;
  });
}

/** The sixteen colours have names that both themes know; others are given by their numbers. */
function named(name: string | null, prefix: string): string {
  return name && /^ansi-(bright-)?[a-z]+$/.test(name) && name !== "ansi-truecolor"
    ? `ansi-${prefix}${name.slice(5).replace("bright-", "")}`
    : "";
}

/** The last line that says something, without colours. */
export function lastLine(text: string | undefined): string | null {
  if (!text) return null;
  const lines = text.slice(-2_000).trimEnd().split("\n");
  return shown(lines.at(-1) ?? "").replace(SGR, "") || null;
}

/** The last `count` characters as the server counts them: it does not count halves. */
export function lastCharacters(text: string, count: number): string {
  let at = text.length;
  for (let left = count; left > 0 && at > 0; left--) {
    at--;
    const code = text.charCodeAt(at);
    if (code >= 0xdc00 && code <= 0xdfff && at > 0) at--;
  }
  return text.slice(at);
}
