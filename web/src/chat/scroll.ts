// A list that stays at its end while a reader is there, and stays where the reader is otherwise.
import { useCallback, useEffect, useRef, useState } from "react";

const NEAR = 80;

export function useStick() {
  const outer = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const isStuck = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);

  const toEnd = useCallback(() => {
    isStuck.current = true;
    if (outer.current) outer.current.scrollTop = outer.current.scrollHeight;
  }, []);
  const onScroll = useCallback(() => {
    const at = outer.current;
    if (at === null) return;
    isStuck.current = at.scrollHeight - at.scrollTop - at.clientHeight < NEAR;
    setAtEnd(isStuck.current);
  }, []);
  useEffect(() => {
    if (inner.current === null || outer.current === null) return;
    const follow = new ResizeObserver(() => isStuck.current && toEnd());
    follow.observe(inner.current);
    follow.observe(outer.current);
    toEnd();
    return () => follow.disconnect();
  }, [toEnd]);

  return { outer, inner, onScroll, isAtEnd, toEnd };
}
