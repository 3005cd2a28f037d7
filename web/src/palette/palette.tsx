// Everything by its name: pages, chats, light and dark. Found with a few letters, chosen with the arrows and Enter.
import { useDeferredValue, useState } from "react";
import { useLocation } from "wouter";
import { useSessions } from "../queries";
import { PLACES, TOOLS } from "../routes";
import { titleOf } from "../sessions/title";
import { Dialog } from "../ui/dialog";
import { chooseTheme } from "../ui/theme";
import { type Command, found } from "./commands";

const MOST = 12;

export default function Palette({ close, help }: { close: () => void; help: () => void }) {
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const sessions = useSessions(useDeferredValue(wanted.trim()), false).data?.items ?? [];
  const fixed: Command[] = [
    { id: "new", label: "New chat", run: () => go("/") },
    ...[...PLACES.slice(1), ...TOOLS].map((each) => ({ id: each.to, label: each.label, run: () => go(each.to) })),
    { id: "light", label: "Light", hint: "how it looks", run: () => chooseTheme("light") },
    { id: "dark", label: "Dark", hint: "how it looks", run: () => chooseTheme("dark") },
    { id: "help", label: "Keyboard", hint: "which keys do what", run: help },
  ];
  const chats = sessions.map((each) => ({
    id: each.id,
    label: titleOf(each),
    hint: "chat",
    run: () => go(`/sessions/${each.id}`),
  }));
  const shown = [...found(fixed, wanted), ...chats].slice(0, MOST);
  const chosen = Math.min(at, shown.length - 1);
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const press = (key: string): boolean => {
    if (key === "ArrowDown") setAt(Math.min(chosen + 1, shown.length - 1));
    else if (key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (key === "Enter") run(shown[chosen]);
    else return false;
    return true;
  };
  return (
    <Dialog title="Go to" isOpen onClose={close}>
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={shown[chosen] ? `palette-${chosen}` : undefined}
        aria-label="What you look for"
        placeholder="A page or a chat"
        value={wanted}
        onChange={(event) => {
          setWanted(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => press(event.key) && event.preventDefault()}
        className="w-full rounded-xl border border-line bg-ground px-3 py-2 placeholder:text-muted"
      />
      <div id="palette-list" role="listbox" aria-label="What is found" className="mt-3 space-y-0.5" data-palette>
        {shown.map((each, index) => (
          <div
            key={each.id}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onPointerMove={() => setAt(index)}
            onClick={() => run(each)}
            onKeyDown={() => undefined}
            className="flex cursor-pointer items-center gap-3 rounded-lg px-3 py-2 text-sm aria-selected:bg-soft"
          >
            <span className="min-w-0 flex-1 truncate">{each.label}</span>
            {each.hint && <span className="shrink-0 text-xs text-muted">{each.hint}</span>}
          </div>
        ))}
      </div>
      {shown.length === 0 && <p className="mt-3 px-3 text-sm text-muted">Nothing is called that.</p>}
    </Dialog>
  );
}
