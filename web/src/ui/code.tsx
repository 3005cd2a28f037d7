// A block of code: its language, a button that copies it, and colours that are loaded when the first one is shown.
import { memo, type ReactNode, useEffect, useState } from "react";
import { CopyButton } from "./copy";

type Highlight = (code: string, language: string) => ReactNode;
let loaded: Highlight | null = null;

export const Code = memo(function Code({ code, language }: { code: string; language: string }) {
  const [highlight, setHighlight] = useState<Highlight | null>(() => loaded);
  useEffect(() => {
    if (highlight || !language) return;
    let isThere = true;
    void import("./highlight").then((module) => {
      loaded = module.highlight;
      if (isThere) setHighlight(() => loaded);
    });
    return () => {
      isThere = false;
    };
  }, [highlight, language]);
  return (
    <div className="code group relative overflow-hidden rounded-xl border border-line bg-soft">
      <div className="flex items-center justify-between border-b border-line py-0.5 ps-3 pe-1 text-xs text-muted">
        <span>{language || "text"}</span>
        <CopyButton text={code} label="Copy the code" />
      </div>
      <pre tabIndex={0} className="!m-0 overflow-x-auto p-3 font-mono text-[13px] leading-relaxed">
        <code>{highlight && language && code.length < 60_000 ? highlight(code, language) : code}</code>
      </pre>
    </div>
  );
});
