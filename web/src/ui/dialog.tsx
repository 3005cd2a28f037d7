import { X } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { IconButton } from "./button";

type Props = { title: string; isOpen: boolean; onClose: () => void; children: ReactNode };

/** The browser's own: it keeps the focus inside, closes with Escape, and gives the focus back. */
export function Dialog(props: Props) {
  return props.isOpen ? <Opened {...props} /> : null;
}

function Opened({ title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
      onKeyDown={(event) => event.stopPropagation()}
      className="mx-auto mt-[12vh] max-h-[76vh] w-[min(34rem,calc(100vw-2rem))] overflow-auto rounded-2xl border border-line bg-panel p-0 text-ink shadow-2xl backdrop:bg-black/40"
    >
      <div className="p-5">
        <div className="mb-3 flex items-center justify-between gap-3">
          <h2 id={id} className="font-semibold text-base">
            {title}
          </h2>
          <IconButton label="Close" onClick={onClose}>
            <X className="size-4" />
          </IconButton>
        </div>
        {children}
      </div>
    </dialog>
  );
}
