// A secret that the server says once and never again.
import { KeyRound } from "lucide-react";
import { Button } from "./button";
import { CopyButton } from "./copy";
import { Dialog } from "./dialog";

type Props = { title: string; secret: string | null; about: string; onClose: () => void };

export function ShownOnce({ title, secret, about, onClose }: Props) {
  return (
    <Dialog title={title} isOpen={secret !== null} onClose={onClose}>
      <p className="mb-3 flex gap-2 text-sm text-muted">
        <KeyRound className="mt-0.5 size-4 shrink-0" />
        {about}
      </p>
      <div className="mb-4 flex items-center gap-1 rounded-xl border border-line bg-soft ps-3 pe-1">
        <code className="min-w-0 flex-1 py-2 font-mono text-sm [overflow-wrap:anywhere]" data-secret>
          {secret}
        </code>
        <CopyButton text={secret ?? ""} />
      </div>
      <div className="flex justify-end">
        <Button kind="primary" onClick={onClose}>
          I have kept it
        </Button>
      </div>
    </Dialog>
  );
}
