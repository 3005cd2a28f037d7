// The name of the tab: how much waits for a person, what is shown, and whose page it is.
import { useEffect } from "react";

const NAME = "Outlast";
let shown: string | null = null;
let needs = 0;

export function nameOfTab(what: string | null, count: number): string {
  return `${count > 0 ? `(${count}) ` : ""}${what === null ? "" : `${what} · `}${NAME}`;
}

function tell(): void {
  document.title = nameOfTab(shown, needs);
}

export function tellNeeds(count: number): void {
  needs = count;
  tell();
}

/** For as long as this is shown. */
export function useTabName(what: string): void {
  useEffect(() => {
    shown = what;
    tell();
    return () => {
      if (shown === what) shown = null;
      tell();
    };
  }, [what]);
}
