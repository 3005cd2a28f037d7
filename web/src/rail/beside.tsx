// Whether the rail is open: kept in this browser. Closed, it is a button that says how much is going on.
import { ListChecks } from "lucide-react";
import { useState } from "react";
import { isOpen } from "../tasks/bits";
import { useTree } from "../tasks/queries";
import Rail from "./rail";

const KEPT = "outlast.rail";

export default function Beside({ session_id }: { session_id: string }) {
  const [kept, setKept] = useState(() => localStorage.getItem(KEPT));
  const [isDrawer, setDrawer] = useState(false);
  const { data } = useTree(session_id, true);
  const tasks = data?.items ?? [];
  const open = tasks.filter(isOpen);
  const needs = open.filter((each) => each.state === "awaiting_input").length;
  const isRoomy = matchMedia("(min-width: 80rem)").matches;
  const isShown = isDrawer || (isRoomy && kept !== "closed" && tasks.length > 0);
  const set = (isOn: boolean) => {
    setDrawer(isOn);
    localStorage.setItem(KEPT, isOn ? "open" : "closed");
    setKept(isOn ? "open" : "closed");
  };
  if (isShown)
    return (
      <aside
        aria-label="Background work"
        className="w-80 shrink-0 border-s border-line bg-ground max-xl:absolute max-xl:inset-y-0 max-xl:right-0 max-xl:z-30 max-xl:w-[min(20rem,100%)] max-xl:shadow-xl"
      >
        <Rail session_id={session_id} close={() => set(false)} />
      </aside>
    );
  if (tasks.length === 0) return null;
  return (
    <button
      type="button"
      onClick={() => set(true)}
      className={`absolute top-[4.25rem] right-4 z-20 flex items-center gap-2 rounded-full border border-line bg-panel px-3 py-1.5 text-sm shadow-sm hover:bg-soft ${needs > 0 ? "text-warn" : "text-muted"}`}
    >
      <ListChecks className="size-4" />
      {needs > 0
        ? `${needs} ${needs === 1 ? "needs" : "need"} you`
        : open.length > 0
          ? `${open.length} at work`
          : "Background work"}
    </button>
  );
}
