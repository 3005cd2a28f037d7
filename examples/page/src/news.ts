// What happens in the session by itself: tasks that go on, and turns that begin without this page.

import { useEffect, useState } from "react";
import type { Session } from "./server";
import { add, type Task, type Tasks } from "./tasks";

const TYPES = "turn.queued,task.created,task.changed,task.ended";
const RETRY_MS = 1_000;

type News = { type: string; turn_id: string | null; data: { task?: Task } };

/** `tasks`: as the events tell them. `turn`: the last one that began, or a new word when the connection came back. */
export function useNews({ id, last_event }: Session) {
  const [tasks, setTasks] = useState<Tasks>(new Map());
  const [turn, setTurn] = useState<string>();

  useEffect(() => {
    let source: EventSource;
    let timer: ReturnType<typeof setTimeout>;
    let position: string | number = last_event;
    let connections = 0;

    function connect() {
      source = new EventSource(`/v1/sessions/${id}/events?types=${TYPES}&after=${position}`);
      source.onopen = () => {
        connections += 1;
        if (connections > 1) setTurn(`connection ${connections}`);
      };
      source.onmessage = (message) => {
        position = message.lastEventId || position;
        const news: News = JSON.parse(message.data);
        if (news.type === "turn.queued" && news.turn_id) setTurn(news.turn_id);
        const task = news.data.task;
        if (task) setTasks((known) => add(known, task));
      };
      // A browser connects again after a lost connection, but not after an error of a server or a proxy.
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(connect, RETRY_MS);
      };
    }

    connect();
    return () => {
      source.close();
      clearTimeout(timer);
    };
  }, [id, last_event]);

  return { tasks, turn };
}
