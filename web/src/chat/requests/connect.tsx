import { useState } from "react";
import { api } from "../../api/client";
import { words } from "../../api/problems";
import { Button, buttonClass } from "../../ui/button";
import type { Request } from "../request";

type Props = { request: Request; refuse: (words: string | null) => void };

/** A credential is kept, encrypted, and never shown again; the task goes on with it. */
export function Connect({ request, refuse }: Props) {
  const [value, setValue] = useState("");
  const keep = async () => {
    refuse(null);
    try {
      await api.put(`connections/${encodeURIComponent(request.provider ?? "")}`, { value });
      setValue("");
    } catch (error) {
      refuse(words(error));
    }
  };
  return (
    <form
      className="flex flex-wrap gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void keep();
      }}
    >
      {request.url && /^https?:/i.test(request.url) && (
        <a href={request.url} target="_blank" rel="noopener noreferrer" className={buttonClass("primary")}>
          Connect there
        </a>
      )}
      <input
        type="password"
        autoComplete="off"
        value={value}
        onChange={(event) => setValue(event.target.value)}
        aria-label={`Credential for ${request.provider ?? "the provider"}`}
        placeholder={`Key or token for ${request.provider ?? "the provider"}`}
        className="min-w-0 flex-1 rounded-lg border border-line bg-panel px-3 py-1.5 placeholder:text-muted"
      />
      <Button kind="primary" type="submit" disabled={value.length < 6}>
        Connect
      </Button>
    </form>
  );
}
