// The raw output of a task: it opens at its end and follows it, is searched by the server, and can be saved.
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, Download, Search } from "lucide-react";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { address, api, type Page } from "../api/client";
import type { components } from "../api/schema";
import { useAction } from "../ui/action";
import { Button, buttonClass, IconButton } from "../ui/button";
import { Refused } from "../ui/empty";
import { type Line, linesOf, spansOf } from "./lines";
import { type Shown, useOutput } from "./window";

type Match = components["schemas"]["Match"];
const LINE = 20;

export function Output({ id, isOver }: { id: string; isOver: boolean }) {
  const { shown, refused, toEnd, earlier, later, around } = useOutput(id);
  const [wanted, setWanted] = useState("");
  const [found, setFound] = useState<{ text: string; matches: Match[] } | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const search = useAction();
  const look = () =>
    search.run(async () => {
      const { items } = await api.get<Page<Match>>(`tasks/${id}/output/search`, { text: wanted, limit: 100 });
      setFound({ text: wanted, matches: items });
    });
  const goTo = async (offset: number) => {
    await around(offset);
    setAt(offset);
  };
  return (
    <section className="overflow-hidden rounded-2xl border border-line bg-panel" aria-label="Output">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
        <h2 className="text-sm font-semibold">Output</h2>
        <span className="text-xs text-muted">
          {shown && shown.total > 0 && `${shown.total.toLocaleString()} characters`}
          {shown?.isAtEnd && !isOver && " · follows"}
        </span>
        <form
          className="ms-auto flex min-w-0 items-center gap-1 rounded-lg border border-line bg-ground ps-2.5"
          onSubmit={(event) => {
            event.preventDefault();
            if (wanted.trim()) void look();
            else setFound(null);
          }}
        >
          <Search className="size-3.5 shrink-0 text-muted" />
          <input
            type="search"
            aria-label="Search the output"
            placeholder="Search, Enter"
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
            className="w-32 min-w-0 bg-transparent px-1 py-1 text-sm outline-none placeholder:text-muted sm:w-48"
          />
        </form>
        <a
          href={address(`tasks/${id}/output/text`)}
          download={`${id}.txt`}
          className={`${buttonClass("quiet")} !px-2`}
          aria-label="Save the output"
          title="Save the output"
        >
          <Download className="size-4" />
        </a>
      </div>
      {(refused || search.refused) && <Refused>{refused ?? search.refused}</Refused>}
      {found && <Found {...found} goTo={(offset) => void goTo(offset)} close={() => setFound(null)} />}
      {shown === null ? (
        <div className="h-40 animate-pulse bg-soft/50" />
      ) : shown.total === 0 ? (
        <p className="px-4 py-6 text-sm text-muted">
          {isOver ? "It has put out nothing." : "Nothing yet. What the tool puts out appears here as it comes."}
        </p>
      ) : (
        <Lines shown={shown} mark={found?.text ?? ""} at={at} toEnd={toEnd} earlier={earlier} later={later} />
      )}
    </section>
  );
}

type LinesProps = {
  shown: Shown;
  mark: string;
  at: number | null;
  toEnd: () => Promise<void>;
  earlier: () => Promise<void>;
  later: () => Promise<void>;
};

function Lines({ shown, mark, at, toEnd, earlier, later }: LinesProps) {
  const outer = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => linesOf(shown.text), [shown.text]);
  const [isAtEnd, setAtEnd] = useState(true);
  const wasAtEnd = useRef(true);
  const before = useRef({ start: shown.start, count: lines.length });
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => outer.current,
    estimateSize: () => LINE,
    overscan: 20,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the text has changed
  useLayoutEffect(() => {
    const { start, count } = before.current;
    before.current = { start: shown.start, count: lines.length };
    if (shown.start < start && lines.length > count) list.scrollToIndex(lines.length - count, { align: "start" });
    else if (shown.isAtEnd && wasAtEnd.current) list.scrollToIndex(lines.length - 1, { align: "end" });
  }, [shown.text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when somebody goes somewhere
  useEffect(() => {
    if (at === null) return;
    wasAtEnd.current = false;
    const index = lineAt(shown, at);
    list.scrollToIndex(index, { align: "center" });
  }, [at]);
  const onScroll = () => {
    const box = outer.current;
    if (!box) return;
    const isNow = box.scrollHeight - box.scrollTop - box.clientHeight < 3 * LINE;
    wasAtEnd.current = isNow;
    setAtEnd(isNow);
    if (isNow && !shown.isAtEnd) void later();
  };
  return (
    <div className="relative">
      {shown.start > shown.cut && (
        <div className="border-b border-line px-4 py-1.5 text-center">
          <Button kind="quiet" className="!py-0.5 !text-xs" onClick={() => void earlier()}>
            Earlier: {shown.start.toLocaleString()} characters
          </Button>
        </div>
      )}
      {shown.cut > 0 && shown.start <= shown.cut && (
        <p className="border-b border-line px-4 py-1.5 text-center text-xs text-muted">
          {shown.cut.toLocaleString()} characters before this are no longer kept.
        </p>
      )}
      <div
        ref={outer}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Lines of the output"
        data-lines={lines.length}
        className="max-h-[60vh] overflow-y-auto py-2 font-mono text-[13px] leading-5"
      >
        <div className="relative w-full" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((each) => (
            <div
              key={each.key}
              data-index={each.index}
              ref={list.measureElement}
              className="absolute inset-x-0 top-0 min-h-5 px-4 whitespace-pre-wrap [overflow-wrap:anywhere] hover:bg-soft"
              style={{ transform: `translateY(${each.start}px)` }}
            >
              <OneLine line={lines[each.index] as Line} mark={mark} />
            </div>
          ))}
        </div>
      </div>
      {(!isAtEnd || !shown.isAtEnd) && (
        <IconButton
          label="To the end of the output"
          className="!absolute right-4 bottom-3 border border-line bg-panel shadow-md"
          onClick={() => {
            wasAtEnd.current = true;
            if (shown.isAtEnd) list.scrollToIndex(lines.length - 1, { align: "end" });
            else void toEnd();
          }}
        >
          <ArrowDown className="size-4" />
        </IconButton>
      )}
    </div>
  );
}

/** The number of the line in which this place of the output stands. */
function lineAt(shown: Shown, offset: number): number {
  let characters = offset - shown.start;
  let count = 0;
  for (const each of shown.text) {
    if (characters-- <= 0) break;
    if (each === "\n") count++;
  }
  return count;
}

function OneLine({ line, mark }: { line: Line; mark: string }) {
  const spans = useMemo(() => spansOf(line), [line]);
  return spans.map((each, index) => (
    <span key={index} className={each.className} style={{ color: each.color, backgroundColor: each.background }}>
      <Marked text={each.text} mark={mark} />
    </span>
  ));
}

function Marked({ text, mark }: { text: string; mark: string }) {
  if (!mark) return text;
  const parts = text.toLowerCase().split(mark.toLowerCase());
  if (parts.length < 2) return text;
  let at = 0;
  return parts.map((part, index) => {
    const before = text.slice(at, at + part.length);
    const hit = text.slice(at + part.length, at + part.length + mark.length);
    at += part.length + mark.length;
    return (
      <span key={index}>
        {before}
        {hit && <mark className="rounded-sm bg-warn-soft text-warn">{hit}</mark>}
      </span>
    );
  });
}

type FoundProps = { text: string; matches: Match[]; goTo: (offset: number) => void; close: () => void };

function Found({ text, matches, goTo, close }: FoundProps) {
  return (
    <div className="border-b border-line bg-soft/50 px-4 py-2 text-sm" data-found={matches.length}>
      <div className="flex items-center justify-between">
        <span className="text-muted">
          {matches.length === 0
            ? `“${text}” is nowhere in it.`
            : matches.length === 1
              ? `One place with “${text}”`
              : `${matches.length}${matches.length >= 100 ? " first" : ""} places with “${text}”`}
        </span>
        <Button kind="quiet" className="!py-0.5 !text-xs" onClick={close}>
          Close
        </Button>
      </div>
      <ul className="max-h-48 overflow-y-auto">
        {matches.map((each) => (
          <li key={each.offset}>
            <button
              type="button"
              onClick={() => goTo(each.offset)}
              className="w-full truncate rounded px-1 text-start font-mono text-xs leading-5 hover:bg-panel"
            >
              {each.line}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
