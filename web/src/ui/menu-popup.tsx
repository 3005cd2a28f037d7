import { CSPProvider } from "@base-ui/react/csp-provider";
import { Menu as Base } from "@base-ui/react/menu";
import type { MenuProps } from "./menu";

export default function MenuPopup({ trigger, items }: MenuProps) {
  return (
    <CSPProvider disableStyleElements>
      <Base.Root>
        <Base.Trigger render={trigger} />
        <Base.Portal>
          <Base.Positioner sideOffset={6} align="end" className="z-50">
            <Base.Popup className="min-w-48 rounded-xl border border-line bg-panel p-1 text-sm shadow-black/10 shadow-lg outline-none">
              {items.map(({ label, icon, hint, isDanger, onClick }) => (
                <Base.Item
                  key={label}
                  onClick={onClick}
                  className={`flex cursor-pointer select-none items-center gap-2.5 rounded-lg px-2.5 py-1.5 outline-none data-[highlighted]:bg-soft ${isDanger ? "text-bad" : ""}`}
                >
                  <span className="text-muted [&>svg]:size-4">{icon}</span>
                  <span className="flex-1">
                    {label}
                    {hint && <span className="block text-muted text-xs">{hint}</span>}
                  </span>
                </Base.Item>
              ))}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  );
}
