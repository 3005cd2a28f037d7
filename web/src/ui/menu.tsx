// A button and what it offers. The button is there at once; what opens is loaded after the page has been drawn.
import { lazy, type ReactElement, type ReactNode, Suspense } from "react";

export type Item = { label: string; icon?: ReactNode; hint?: string; isDanger?: boolean; onClick: () => void };
export type MenuProps = { trigger: ReactElement; items: readonly Item[] };

const Loaded = lazy(() => import("./menu-popup"));

export function Menu(props: MenuProps) {
  return (
    <Suspense fallback={props.trigger}>
      <Loaded {...props} />
    </Suspense>
  );
}
