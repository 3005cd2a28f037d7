import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { MessageView } from "./MessageView";
import { useNews } from "./news";
import { type Message, messagesOf, type Opened, stop } from "./server";
import { isOver, tasksOf } from "./tasks";

const lastAnswer = (messages: Message[]) => messages.findLast((message) => message.role === "assistant")?.id;

export function Chat({ session, messages: opened }: Opened) {
  const answered = useRef(lastAnswer(opened));
  const transport = useMemo(
    () =>
      new DefaultChatTransport<Message>({
        api: "/api/chat",
        prepareReconnectToStreamRequest: ({ api, id }) => ({
          // The answer after the last one that is shown, also if it is over by now; `start` if there is none yet.
          api: `${api}/${id}/stream?after=${answered.current ?? "start"}`,
        }),
      }),
    [],
  );
  const { messages, setMessages, sendMessage, resumeStream, status, error } = useChat<Message>({
    id: session.id,
    messages: opened,
    transport,
    resume: true,
  });
  const [problem, setProblem] = useState<Error>();
  const isBusy = status === "submitted" || status === "streaming";

  // A turn may begin without this page: a task has ended, or somebody wrote in another page. Then what is there is read
  // anew, and the answer that is being made is followed. A turn that this page began itself is shown already.
  const news = useNews(session);
  const followed = useRef<string>(undefined);
  useEffect(() => {
    if (!isBusy) answered.current = lastAnswer(messages);
    if (isBusy || news.turn === followed.current) return;
    followed.current = news.turn;
    if (messages.some((message) => message.id === news.turn)) return;
    messagesOf(session.id).then((shown) => {
      answered.current = lastAnswer(shown);
      setMessages(shown);
      return resumeStream();
    }, setProblem);
  }, [isBusy, messages, news.turn, resumeStream, session.id, setMessages]);

  const tasks = tasksOf(messages, news.tasks);
  const open = [...tasks.values()].filter((task) => !isOver(task));
  return (
    <main>
      <ol className="messages" aria-live="polite">
        {messages.map((message) => (
          <MessageView key={message.id} message={message} tasks={tasks} />
        ))}
      </ol>
      {(error ?? problem) && <p className="error" role="alert">{(error ?? problem)?.message}</p>}
      <p className="status" role="status">
        {isBusy ? "Answering …" : open.length > 0 ? `In the background: ${open.map((task) => task.title).join(", ")}` : ""}
      </p>
      <Composer isBusy={isBusy} onSend={(text) => sendMessage({ text })} onStop={() => stop(session.id).catch(setProblem)} />
    </main>
  );
}

type ComposerProps = { isBusy: boolean; onSend: (text: string) => void; onStop: () => void };

function Composer({ isBusy, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState("");

  function submit(event: FormEvent) {
    event.preventDefault();
    if (isBusy || !text.trim()) return;
    onSend(text);
    setText("");
  }

  return (
    <form className="composer" onSubmit={submit}>
      <input aria-label="Message" placeholder="Write a message" value={text} onChange={(event) => setText(event.target.value)} />
      {isBusy ? <button type="button" onClick={onStop}>Stop</button> : <button type="submit">Send</button>}
    </form>
  );
}
