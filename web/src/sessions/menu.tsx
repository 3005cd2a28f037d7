// What can be done with a session: renamed, archived, forked, exported, deleted.
import { Archive, ArchiveRestore, Download, Ellipsis, GitFork, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { address, api } from "../api/client";
import { words } from "../api/problems";
import type { Session } from "../api/types";
import { client } from "../queries";
import { forget } from "../store";
import { Button, IconButton } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refused } from "../ui/empty";
import { Menu } from "../ui/menu";
import { titleOf } from "./title";

type Asked = "rename" | "delete" | null;

export function SessionMenu({ session }: { session: Session }) {
  const [asked, setAsked] = useState<Asked>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [path, go] = useLocation();
  const url = `sessions/${session.id}`;

  const run = async (action: () => Promise<unknown>) => {
    setRefused(null);
    try {
      await action();
      setAsked(null);
      void client.invalidateQueries({ queryKey: ["sessions"] });
    } catch (error) {
      setRefused(words(error));
    }
  };
  const remove = async () => {
    await api.delete(url);
    forget(session.id);
    if (path.endsWith(session.id)) go("/");
  };
  const fork = async () => go(`/sessions/${(await api.post<Session>(`${url}/fork`)).id}`);

  return (
    <>
      <Menu
        trigger={
          <IconButton label={`More for ${titleOf(session)}`} className="!size-7">
            <Ellipsis className="size-4" />
          </IconButton>
        }
        items={[
          { label: "Rename", icon: <Pencil />, onClick: () => setAsked("rename") },
          { label: "Fork", icon: <GitFork />, onClick: () => void run(fork) },
          {
            label: session.is_archived ? "Take out of the archive" : "Archive",
            icon: session.is_archived ? <ArchiveRestore /> : <Archive />,
            onClick: () => void run(() => api.patch(url, { is_archived: !session.is_archived })),
          },
          { label: "Export", icon: <Download />, onClick: () => download(session) },
          { label: "Delete", icon: <Trash2 />, isDanger: true, onClick: () => setAsked("delete") },
        ]}
      />
      <Dialog title="Rename" isOpen={asked === "rename"} onClose={() => setAsked(null)}>
        <Rename session={session} save={(title) => void run(() => api.patch(url, { title }))} />
        {refused && <Refused>{refused}</Refused>}
      </Dialog>
      <Dialog title="Delete this chat?" isOpen={asked === "delete"} onClose={() => setAsked(null)}>
        <p className="mb-4 text-sm text-muted">
          “{titleOf(session)}” is stopped, its background tasks are cancelled, and everything of it is removed. This
          cannot be undone.
        </p>
        {refused && <Refused>{refused}</Refused>}
        <div className="flex justify-end gap-2">
          <Button onClick={() => setAsked(null)}>Keep it</Button>
          <Button kind="danger" onClick={() => void run(remove)}>
            Delete
          </Button>
        </div>
      </Dialog>
    </>
  );
}

function Rename({ session, save }: { session: Session; save: (title: string) => void }) {
  const [title, setTitle] = useState(titleOf(session));
  return (
    <form
      className="flex gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (title.trim()) save(title.trim());
      }}
    >
      <input
        value={title}
        maxLength={1_000}
        aria-label="Title"
        onChange={(event) => setTitle(event.target.value)}
        className="min-w-0 flex-1 rounded-lg border border-line bg-ground px-3 py-1.5 text-sm"
      />
      <Button kind="primary" type="submit">
        Save
      </Button>
    </form>
  );
}

function download(session: Session): void {
  const link = document.createElement("a");
  link.href = address(`sessions/${session.id}/export`);
  link.download = `${session.id}.json`;
  link.click();
}
