import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { IconButton } from "./button";

export function CopyButton({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "string" ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <IconButton label={isDone ? "Copied" : label} onClick={() => void copy().catch(() => undefined)}>
      {isDone ? <Check className="size-4 text-good" /> : <Copy className="size-4" />}
    </IconButton>
  );
}
