// How many things wait for a person: in the name of the tab, and as a notice of the system for who asked for that.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import { tellNeeds } from "../ui/title";

const NAME = "Outlast";

export function useNeeds(): number {
  const { data } = useQuery({
    queryKey: ["requests", "count"],
    queryFn: () => api.get<{ count: number }>("requests/count"),
  });
  return data?.count ?? 0;
}

/** For the frame of all pages: once in a tab. */
export function useTold(): number {
  const count = useNeeds();
  const before = useRef(count);
  useEffect(() => {
    tellNeeds(count);
    if (count > before.current && document.hidden) notify(count);
    before.current = count;
  }, [count]);
  return count;
}

/** Several tabs show one notice: it has one name. */
function notify(count: number): void {
  if (typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const body = count === 1 ? "An agent needs you to go on." : `${count} agents need you to go on.`;
  new Notification(NAME, { body, tag: "outlast-needs" }).onclick = () => window.focus();
}

export function useNotices() {
  const isThere = typeof Notification !== "undefined";
  const [state, setState] = useState<NotificationPermission | "missing">(isThere ? Notification.permission : "missing");
  return { state, ask: () => void Notification.requestPermission().then(setState) };
}
