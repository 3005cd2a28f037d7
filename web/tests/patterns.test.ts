// Every pattern that foreign text is fed to takes time in proportion to the text: one that takes its square freezes the page.
import { describe, expect, it } from "vitest";
import { lastLine, linesOf } from "../src/tasks/lines";

const SOURCES = import.meta.glob("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true }) as Record<
  string,
  string
>;
const LITERAL = /(?<=[(=,:&|?[] ?)\/(?![/*])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+)\/([dgimsuvy]*)(?=[.,;)\s])/g;
const MADE = /new RegExp\(/g;
const ESCAPE = String.fromCharCode(27);
const BEGINNINGS = ["", "<", ESCAPE, `${ESCAPE}[`, `${ESCAPE}]`, "language-", "ansi-", "http:", "image/"];
const RUNS = [
  " ",
  "\r",
  "\n",
  "\r\n",
  "\t",
  "a",
  "0",
  ";",
  "0;",
  "?",
  "-",
  "+",
  "/",
  "<",
  ">",
  "*",
  "_",
  "`",
  "[",
  ESCAPE,
  `${ESCAPE}[`,
  `${ESCAPE}[0`,
  `${ESCAPE}]`,
  "lang-",
];
const ENDS = ["", "x", "!"];
const ONCE = 2_000;
const TIMES = 8;
const LEAST_MS = 1;

function* shapes(length: number): Generator<string> {
  for (const begins of BEGINNINGS)
    for (const run of RUNS) for (const ends of ENDS) yield begins + run.repeat(length / run.length) + ends;
}

function milliseconds(work: (text: string) => unknown, text: string): number {
  const began = performance.now();
  work(text);
  return performance.now() - began;
}

/** A square would take 64 times as long: three times what is in proportion is allowed, and a moment in any case. */
function isInProportion(work: (text: string) => unknown, once: string, often: string): boolean {
  const most = 3 * TIMES;
  return milliseconds(work, often) <= most * Math.max(LEAST_MS, milliseconds(work, once));
}

function check(work: (text: string) => unknown): void {
  const twice = [...shapes(ONCE)].map((once, at) => [once, [...OFTEN][at] ?? ""] as const);
  for (const [once, often] of twice) {
    const holds = [0, 1, 2, 3, 4].some(() => isInProportion(work, once, often));
    expect(holds, `more than in proportion: ${JSON.stringify(once.slice(0, 40))}`).toBe(true);
  }
}

const OFTEN = [...shapes(ONCE * TIMES)];
const PATTERNS = Object.entries(SOURCES).flatMap(([path, source]) =>
  [...source.matchAll(LITERAL)].map(([, body, flags]) => ({ path, body: body ?? "", flags: flags ?? "" })),
);

describe("patterns over foreign text", () => {
  it("are found", () => {
    expect(PATTERNS.map((each) => each.body)).toEqual(expect.arrayContaining(["\\s+", "\\n$"]));
  });

  it.each(PATTERNS)("$path: /$body/$flags", ({ body, flags }) => {
    check((text) => text.replace(new RegExp(body, flags), ""));
  });

  it("that are put together stand in the module of lines alone, which is fed as a whole", () => {
    const made = Object.entries(SOURCES).filter(([, source]) => source.match(MADE));
    expect(made.map(([path]) => path)).toEqual(["../src/tasks/lines.ts"]);
    check(linesOf);
    check(lastLine);
  });
});
