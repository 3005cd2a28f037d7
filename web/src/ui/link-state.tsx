// Whether what is shown is what is: said in words when it is not.
import { RefreshCw, WifiOff } from "lucide-react";
import { retryNow, useStore } from "../store";
import { Button } from "./button";
import { useTick } from "./time";

export function LinkBar() {
  const link = useStore((state) => state.link);
  const isOff = link.is === "waiting";
  const isOutdated = useStore((state) => state.isOutdated);
  useTick(isOff);
  return (
    <div role="status" aria-live="polite" data-link={link.is}>
      {isOff && (
        <div className="flex items-center justify-center gap-3 border-b border-line bg-warn-soft px-4 py-1.5 text-sm text-warn">
          <WifiOff className="size-4 shrink-0" />
          <span>The server does not answer. Trying again in {seconds(link.retry_at)} s; nothing is lost.</span>
          <Button kind="quiet" className="!py-0.5 !text-warn" onClick={retryNow}>
            <RefreshCw className="size-3.5" />
            Now
          </Button>
        </div>
      )}
      {isOutdated && !isOff && (
        <div
          className="flex items-center justify-center gap-3 border-b border-line bg-tint px-4 py-1.5 text-sm"
          data-outdated
        >
          <span>The server was updated. What you have begun to write is kept.</span>
          <Button kind="quiet" className="!py-0.5 !text-accent" onClick={() => location.reload()}>
            Load the page anew
          </Button>
        </div>
      )}
    </div>
  );
}

function seconds(until: number): number {
  return Math.max(0, Math.ceil((until - Date.now()) / 1_000));
}
