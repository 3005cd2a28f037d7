// The part of an output that is shown. It opens at the end and follows it; earlier parts come when they are asked for.
import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { components } from "../api/schema";
import { follow, useStore } from "../store";
import { lastCharacters } from "./lines";

type Piece = components["schemas"]["PieceAnswer"];
export type Shown = { text: string; start: number; end: number; total: number; isAtEnd: boolean; cut: number };

const PAGE = 65_536;

export function useOutput(id: string) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const current = useRef<Shown | null>(null);
  const isAsking = useRef(false);

  const show = useCallback((next: Shown | null) => {
    current.current = next;
    setShown(next);
  }, []);
  const read = useCallback(
    async (query: Record<string, number>): Promise<Piece | null> => {
      if (isAsking.current) return null;
      isAsking.current = true;
      try {
        return await api.get<Piece>(`tasks/${encodeURIComponent(id)}/output`, query);
      } catch (error) {
        setRefused(words(error));
        return null;
      } finally {
        isAsking.current = false;
      }
    },
    [id],
  );

  const toEnd = useCallback(async () => {
    const piece = await read({ tail: PAGE });
    if (piece) show(shownOf(piece, true));
  }, [read, show]);

  const earlier = useCallback(async () => {
    const now = current.current;
    if (!now || now.start <= now.cut) return;
    const after = Math.max(0, now.start - PAGE);
    const piece = await read({ after, limit: now.start - after });
    if (piece && current.current === now)
      show({
        ...now,
        text: piece.text + now.text,
        start: piece.offset,
        cut: Math.max(now.cut, piece.cut && piece.offset),
      });
  }, [read, show]);

  const later = useCallback(async () => {
    const now = current.current;
    if (!now || now.isAtEnd) return;
    const piece = await read({ after: now.end, limit: PAGE });
    if (piece && current.current === now) show(joined(now, piece));
  }, [read, show]);

  const around = useCallback(
    async (offset: number) => {
      const now = current.current;
      if (now && offset >= now.start && offset < now.end) return;
      const piece = await read({ after: Math.max(0, offset - 8_000), limit: PAGE });
      if (piece) show(shownOf(piece, piece.next_offset >= piece.total));
    },
    [read, show],
  );

  const isFollowing = shown?.isAtEnd ?? false;
  useEffect(() => {
    if (!isFollowing) return;
    const stop = follow(id, current.current?.end ?? "end");
    const take = async () => {
      const now = current.current;
      const live = useStore.getState().outputs[id];
      if (!now?.isAtEnd || !live || live.next_offset <= now.end) return;
      if (live.offset > now.end) {
        // More has come than the stream keeps: what lies between is read.
        const piece = await read({ after: now.end, limit: PAGE });
        if (piece && current.current === now) show({ ...joined(now, piece), isAtEnd: true });
        return;
      }
      const text = now.text + lastCharacters(live.text, live.next_offset - now.end);
      show({ ...now, text, end: live.next_offset, total: Math.max(now.total, live.next_offset) });
    };
    void take();
    const forget = useStore.subscribe((state, before) => {
      if (state.outputs[id] !== before.outputs[id]) void take();
    });
    return () => {
      forget();
      stop();
    };
  }, [id, isFollowing, read, show]);

  useEffect(() => {
    show(null);
    void toEnd();
  }, [show, toEnd]);
  return { shown, refused, toEnd, earlier, later, around };
}

function shownOf(piece: Piece, isAtEnd: boolean): Shown {
  const { text, offset, next_offset, total, cut } = piece;
  return { text, start: offset, end: next_offset, total, isAtEnd, cut: cut > 0 ? offset : 0 };
}

function joined(now: Shown, piece: Piece): Shown {
  const isAtEnd = piece.next_offset >= piece.total;
  return { ...now, text: now.text + piece.text, end: piece.next_offset, total: piece.total, isAtEnd };
}
