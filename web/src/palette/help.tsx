import { Dialog } from "../ui/dialog";

const KEYS: readonly [string, string][] = [
  ["⌘ K or Ctrl K", "go to a page or a chat"],
  ["g c", "chats"],
  ["g t", "tasks"],
  ["g n", "what needs you"],
  ["g s", "schedules"],
  ["g u", "usage"],
  ["Enter", "send"],
  ["Shift Enter", "a new line"],
  ["Escape", "close what is open"],
  ["?", "this list"],
];

export default function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard" isOpen onClose={close}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 text-sm" data-help>
        {KEYS.map(([keys, said]) => (
          <div key={keys} className="contents">
            <dt>
              <kbd className="rounded-md border border-line bg-soft px-1.5 py-0.5 font-sans text-xs">{keys}</kbd>
            </dt>
            <dd className="text-muted">{said}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
