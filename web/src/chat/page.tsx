import { lazy, Suspense, useEffect } from "react";
import { useParams } from "wouter";
import { open, useStore } from "../store";
import { Nothing } from "../ui/empty";
import { Conversation } from "./conversation";
import { NewChat } from "./new-chat";

const Beside = lazy(() => import("../rail/beside"));

export default function ChatPage() {
  const { id } = useParams<{ id?: string }>();
  return id === undefined ? <NewChat /> : <Opened key={id} id={id} />;
}

function Opened({ id }: { id: string }) {
  const isThere = useStore((state) => id in state.views);
  const isDeleted = useStore((state) => state.views[id]?.is_deleted ?? false);
  const failed = useStore((state) => state.failed[id]);
  useEffect(() => void open(id), [id]);
  if (isDeleted) return <Nothing title="This chat was deleted">Choose another one at the side.</Nothing>;
  if (failed && !isThere) return <Nothing title="This chat cannot be shown">{failed}</Nothing>;
  if (!isThere) return <Skeleton />;
  return (
    <div className="relative flex min-h-0 flex-1">
      <div className="min-h-0 min-w-0 flex-1">
        <Conversation id={id} />
      </div>
      <Suspense fallback={null}>
        <Beside session_id={id} />
      </Suspense>
    </div>
  );
}

function Skeleton() {
  return (
    <div className="mx-auto w-full max-w-3xl animate-pulse space-y-4 p-6 pt-16" aria-hidden="true">
      <div className="ms-auto h-10 w-1/2 rounded-2xl bg-soft" />
      <div className="h-4 w-11/12 rounded bg-soft" />
      <div className="h-4 w-9/12 rounded bg-soft" />
      <div className="h-4 w-10/12 rounded bg-soft" />
    </div>
  );
}
