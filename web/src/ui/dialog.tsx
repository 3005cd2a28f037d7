import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "./button";

type Props = { title: string; isOpen: boolean; onClose: () => void; children: ReactNode };

export function Dialog({ title, isOpen, onClose, children }: Props) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-black/40" />
        <Base.Popup className="fixed top-[12vh] left-1/2 z-50 max-h-[76vh] w-[min(34rem,calc(100vw-2rem))] -translate-x-1/2 overflow-auto rounded-2xl border border-line bg-panel p-5 shadow-2xl outline-none">
          <div className="mb-3 flex items-center justify-between gap-3">
            <Base.Title className="text-base font-semibold">{title}</Base.Title>
            <IconButton label="Close" onClick={onClose}>
              <X className="size-4" />
            </IconButton>
          </div>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
