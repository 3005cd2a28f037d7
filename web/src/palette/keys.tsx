// The keyboard, over all pages: what opens from it is loaded when it is first asked for.
import { lazy, Suspense, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { GOES } from "./commands";

const Palette = lazy(() => import("./palette"));
const Help = lazy(() => import("./help"));

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function Keyboard() {
  const [shown, show] = useState<"palette" | "help" | null>(null);
  const [, go] = useLocation();
  useEffect(() => {
    let isG = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const hear = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        show("palette");
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isWriting(event.target)) return;
      const goal = isG ? GOES[event.key] : undefined;
      isG = event.key === "g";
      clearTimeout(timer);
      timer = setTimeout(() => {
        isG = false;
      }, 1_200);
      if (goal !== undefined) go(goal);
      else if (event.key === "?") show("help");
    };
    addEventListener("keydown", hear);
    return () => {
      removeEventListener("keydown", hear);
      clearTimeout(timer);
    };
  }, [go]);
  const close = () => show(null);
  return (
    <Suspense fallback={null}>
      {shown === "palette" && <Palette close={close} help={() => show("help")} />}
      {shown === "help" && <Help close={close} />}
    </Suspense>
  );
}
