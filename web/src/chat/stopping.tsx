// What goes on after Stop, in words. What was kept is said where the answer ends.
import { useState } from "react";
import { api } from "../api/client";
import { words } from "../api/problems";
import { hasEnded } from "../log/view";
import { useStore } from "../store";
import { Button } from "../ui/button";

export function useStopping(id: string) {
  const [said, setSaid] = useState<string | null>(null);
  const stop = async (cascade = false) => {
    try {
      await api.post(`sessions/${id}/stop`, { cascade });
      const view = useStore.getState().views[id];
      const open = Object.values(view?.tasks ?? {}).filter((each) => !hasEnded(each)).length;
      const goesOn =
        open === 0 || cascade
          ? null
          : `${open === 1 ? "One background task goes on" : `${open} background tasks go on`}.`;
      setSaid(goesOn);
    } catch (error) {
      setSaid(words(error));
    }
  };
  return { said, stop, clear: () => setSaid(null) };
}

type Props = { said: string | null; hasTasks: boolean; stopAll: () => void };

export function Stopped({ said, hasTasks, stopAll }: Props) {
  if (said === null) return null;
  return (
    <p role="status" className="flex flex-wrap items-center gap-2 text-sm text-muted">
      {said}
      {hasTasks && (
        <Button className="!py-0.5 !text-xs" onClick={stopAll}>
          Cancel those, too
        </Button>
      )}
    </p>
  );
}
