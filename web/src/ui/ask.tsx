// A question before something that cannot be undone.
import { type ReactNode, useState } from "react";
import { useAction } from "./action";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { Refused } from "./empty";

type Props = { label: ReactNode; title: string; about: string; yes: string; run: () => Promise<unknown> };

export function Ask({ label, title, about, yes, run }: Props) {
  const [isOpen, setOpen] = useState(false);
  const { isBusy, refused, run: act } = useAction();
  return (
    <>
      <Button kind="quiet" className="!px-2 !text-xs" onClick={() => setOpen(true)}>
        {label}
      </Button>
      <Dialog title={title} isOpen={isOpen} onClose={() => setOpen(false)}>
        <p className="mb-4 text-sm text-muted">{about}</p>
        {refused && <Refused>{refused}</Refused>}
        <div className="flex justify-end gap-2">
          <Button onClick={() => setOpen(false)}>Leave it</Button>
          <Button
            kind="danger"
            disabled={isBusy}
            onClick={() => void act(run).then((isDone) => isDone && setOpen(false))}
          >
            {yes}
          </Button>
        </div>
      </Dialog>
    </>
  );
}
