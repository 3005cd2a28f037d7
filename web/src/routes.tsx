// The pages. Each address must also be known to the server: `PAGES` in `api/routes/server/page.py`.
import { ListChecks, MessageSquare } from "lucide-react";
import { type ComponentType, type LazyExoticComponent, lazy, type ReactNode } from "react";

export type PageRoute = {
  path: string;
  page: LazyExoticComponent<ComponentType> | ComponentType;
};
/** What the side bar offers. */
export type Place = { to: string; label: string; icon: ReactNode; isOf: RegExp };

const Chat = lazy(() => import("./chat/page"));
const Tasks = lazy(() => import("./tasks/list-page"));
const TaskPage = lazy(() => import("./tasks/page"));

export const ROUTES: readonly PageRoute[] = [
  { path: "/", page: Chat },
  { path: "/sessions/:id", page: Chat },
  { path: "/tasks", page: Tasks },
  { path: "/tasks/:id", page: TaskPage },
];

export const PLACES: readonly Place[] = [
  { to: "/", label: "Chats", icon: <MessageSquare className="size-4" />, isOf: /^\/(sessions\/.*)?$/ },
  { to: "/tasks", label: "Tasks", icon: <ListChecks className="size-4" />, isOf: /^\/tasks/ },
];
