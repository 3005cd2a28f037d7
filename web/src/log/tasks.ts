// Background tasks, as the log tells of them.
import type { LogEvent, TaskRequest, TaskSnapshot } from "../api/types";
import type { View } from "./view";

type Of<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;

export function changedTask(view: View, task: TaskSnapshot): View {
  return { ...view, tasks: { ...view.tasks, [task.id]: { ...view.tasks[task.id], ...task } } };
}

export function openedRequest(view: View, event: Of<"request.opened">): View {
  return withRequest(view, event.task_id, event.data.request);
}

export function closedRequest(view: View, event: Of<"request.closed">): View {
  const known = event.task_id === null ? undefined : view.tasks[event.task_id];
  if (known?.request == null || known.request.id !== event.data.request_id) return view;
  return withRequest(view, event.task_id, { ...known.request, closed: { at: event.at, ...event.data } });
}

function withRequest(view: View, id: string | null, request: TaskRequest | { [name: string]: unknown }): View {
  const task = id === null ? undefined : view.tasks[id];
  return task === undefined ? view : { ...view, tasks: { ...view.tasks, [task.id]: { ...task, request } } };
}
