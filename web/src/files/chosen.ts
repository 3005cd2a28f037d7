// Files that go with a message: chosen, dropped or pasted, and sent before it. What was sent is not sent again.
import { useEffect, useState } from "react";
import { address, newKey } from "../api/client";
import { problemOf } from "../api/problems";

/** `id`: by which the server knows it, once it has it. `file`: the bytes, while they have to be sent. */
export type Chosen = { key: string; name: string; type: string; bytes: number; id: string | null; file: File | null };

export const MOST = 20;

export function chosen(files: Iterable<File>): Chosen[] {
  return [...files].map((file) => ({
    key: newKey(),
    name: nameOf(file),
    type: file.type,
    bytes: file.size,
    id: null,
    file,
  }));
}

/** What the server has already. */
export function known(file: { id?: string | null; name?: string | null; media_type: string; bytes: number }): Chosen[] {
  const { id, name, media_type: type, bytes } = file;
  return id ? [{ key: id, name: name ?? type, type, bytes, id, file: null }] : [];
}

/** A pasted picture has no name of its own worth keeping, and some have none at all. */
function nameOf(file: File): string {
  return file.name.trim() || `file.${file.type.split("/")[1]?.replace(/\W.*/, "") || "bin"}`;
}

/** Each is sent once; `tell` hears of every one that the server has taken, so that a second try goes on from there. */
export async function sendFiles(
  session_id: string,
  files: readonly Chosen[],
  tell: (sent: Chosen) => void,
): Promise<string[]> {
  const ids: string[] = [];
  for (const each of files) {
    const id = each.id ?? (await upload(session_id, each));
    if (each.id === null) tell({ ...each, id, file: null });
    ids.push(id);
  }
  return ids;
}

async function upload(session_id: string, { file, name }: Chosen): Promise<string> {
  const response = await fetch(address(`sessions/${session_id}/files`, { name }), {
    method: "POST",
    headers: { Accept: "application/json", "Content-Type": file?.type || "application/octet-stream" },
    body: file,
  });
  if (!response.ok) throw await problemOf(response);
  return ((await response.json()) as { id: string }).id;
}

export type Files = {
  items: readonly Chosen[];
  add: (files: Iterable<File>) => void;
  remove: (key: string) => void;
  put: (items: readonly Chosen[]) => void;
};

export function useFiles(first: readonly Chosen[] = []): Files {
  const [items, setItems] = useState(first);
  return {
    items,
    add: (files) => setItems((all) => [...all, ...chosen(files)].slice(0, MOST)),
    remove: (key) => setItems((all) => all.filter((each) => each.key !== key)),
    put: setItems,
  };
}

/** The address of a picture that has not been sent yet. */
export function useLocalUrl(file: File | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (file === null) return;
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return url;
}

export type Kept = { id: string };
export const asked = (ids: readonly string[]): Kept[] => ids.map((id) => ({ id }));
