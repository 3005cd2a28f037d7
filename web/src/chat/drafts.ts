// What was begun and not sent is there after a reload.
import { useEffect, useState } from "react";

const name = (draft: string) => `outlast.draft.${draft}`;

export function useDraft(draft: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => localStorage.getItem(name(draft)) ?? "");
  useEffect(() => {
    if (text) localStorage.setItem(name(draft), text);
    else localStorage.removeItem(name(draft));
  }, [draft, text]);
  return [text, setText];
}

export function setDraft(draft: string, text: string): void {
  localStorage.setItem(name(draft), text);
}
