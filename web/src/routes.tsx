// The pages. Each address must also be known to the server: `PAGES` in `api/routes/server/page.py`.
import { BellRing, CalendarClock, ChartColumn, KeyRound, ListChecks, MessageSquare, Plug, Webhook } from "lucide-react";
import { type ComponentType, type LazyExoticComponent, lazy, type ReactNode } from "react";

export type PageRoute = {
  path: string;
  page: LazyExoticComponent<ComponentType> | ComponentType;
};
/** What the side bar offers. */
export type Place = { to: string; label: string; icon: ReactNode; isOf: RegExp; counts?: boolean };

const Chat = lazy(() => import("./chat/page"));
const Tasks = lazy(() => import("./tasks/list-page"));
const Needs = lazy(() => import("./needs/page"));
const Usage = lazy(() => import("./usage/page"));
const Keys = lazy(() => import("./keys/page"));
const Connections = lazy(() => import("./connections/page"));
const Schedules = lazy(() => import("./schedules/page"));
const Webhooks = lazy(() => import("./webhooks/page"));
const TaskPage = lazy(() => import("./tasks/page"));

export const ROUTES: readonly PageRoute[] = [
  { path: "/", page: Chat },
  { path: "/sessions/:id", page: Chat },
  { path: "/tasks", page: Tasks },
  { path: "/tasks/:id", page: TaskPage },
  { path: "/needs", page: Needs },
  { path: "/schedules", page: Schedules },
  { path: "/webhooks", page: Webhooks },
  { path: "/usage", page: Usage },
  { path: "/keys", page: Keys },
  { path: "/connections", page: Connections },
];

export const PLACES: readonly Place[] = [
  { to: "/", label: "Chats", icon: <MessageSquare className="size-4" />, isOf: /^\/(sessions\/.*)?$/ },
  { to: "/tasks", label: "Tasks", icon: <ListChecks className="size-4" />, isOf: /^\/tasks/ },
  { to: "/needs", label: "Needs you", icon: <BellRing className="size-4" />, isOf: /^\/needs/, counts: true },
  { to: "/schedules", label: "Schedules", icon: <CalendarClock className="size-4" />, isOf: /^\/schedules/ },
];

/** What is looked at now and then: a row of pictures at the foot of the side bar. */
export const TOOLS: readonly Place[] = [
  { to: "/usage", label: "Usage", icon: <ChartColumn className="size-4" />, isOf: /^\/usage/ },
  { to: "/connections", label: "Connections", icon: <Plug className="size-4" />, isOf: /^\/connections/ },
  { to: "/webhooks", label: "Webhooks", icon: <Webhook className="size-4" />, isOf: /^\/webhooks/ },
  { to: "/keys", label: "Keys", icon: <KeyRound className="size-4" />, isOf: /^\/keys/ },
];
