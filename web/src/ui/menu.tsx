import { Menu as Base } from "@base-ui/react/menu";
import type { ReactElement, ReactNode } from "react";

/** A button and what it offers. */
export function Menu({ trigger, children }: { trigger: ReactElement; children: ReactNode }) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} align="end" className="z-50">
          <Base.Popup className="min-w-48 rounded-xl border border-line bg-panel p-1 text-sm shadow-lg shadow-black/10 outline-none">
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

type ItemProps = { children: ReactNode; icon?: ReactNode; hint?: string; isDanger?: boolean; onClick: () => void };

export function MenuItem({ children, icon, hint, isDanger, onClick }: ItemProps) {
  return (
    <Base.Item
      onClick={onClick}
      className={`flex cursor-pointer items-center gap-2.5 rounded-lg px-2.5 py-1.5 outline-none select-none data-[highlighted]:bg-soft ${isDanger ? "text-bad" : ""}`}
    >
      <span className="text-muted [&>svg]:size-4">{icon}</span>
      <span className="flex-1">
        {children}
        {hint && <span className="block text-xs text-muted">{hint}</span>}
      </span>
    </Base.Item>
  );
}
