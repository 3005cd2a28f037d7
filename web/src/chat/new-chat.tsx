import { useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import { words } from "../api/problems";
import type { Session, WhenBusy } from "../api/types";
import { DropPlace } from "../files/attached";
import { type Chosen, useFiles } from "../files/chosen";
import { useAgents } from "../queries";
import { Refused } from "../ui/empty";
import { Logo } from "../ui/logo";
import { Composer } from "./composer";
import { send } from "./send";

/** A new session begins with its first message. */
export function NewChat() {
  const { data } = useAgents();
  const agents = data?.items ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [, go] = useLocation();
  const agent = chosen ?? agents[0]?.name;

  const files = useFiles();
  const begin = async (text: string, _: WhenBusy, chosen: readonly Chosen[]) => {
    setRefused(null);
    try {
      const session = await api.post<Session>("sessions", agent ? { agent } : {});
      void send(session.id, text, "steer", chosen);
      go(`/sessions/${session.id}`);
      return true;
    } catch (error) {
      setRefused(words(error));
      return false;
    }
  };

  return (
    <DropPlace files={files} className="h-full w-full">
      <div className="mx-auto flex h-full w-full max-w-2xl flex-col justify-center gap-5 p-6">
        <div className="flex flex-col items-center gap-3 text-center">
          <Logo />
          <h1 className="text-2xl font-semibold tracking-tight">What should be done?</h1>
          <p className="max-w-md text-sm text-muted">
            Whatever takes long goes on in the background, also when you close this page. You are told here when it is
            done.
          </p>
        </div>
        {refused && <Refused>{refused}</Refused>}
        <Composer
          draft="new"
          placeholder={agent ? `Ask ${agent}` : "Ask"}
          files={files}
          onSend={begin}
          isBusy={false}
        />
        {agents.length > 1 && (
          <fieldset className="flex flex-wrap justify-center gap-2">
            <legend className="sr-only">Agent</legend>
            {agents.map(({ name, has_worker }) => (
              <label
                key={name}
                className="cursor-pointer rounded-full border border-line bg-panel px-3 py-1 text-sm text-muted has-[:checked]:border-accent has-[:checked]:bg-tint has-[:checked]:text-ink has-[:focus-visible]:outline-2"
              >
                <input
                  type="radio"
                  name="agent"
                  className="sr-only"
                  checked={agent === name}
                  onChange={() => setChosen(name)}
                />
                {name}
                {has_worker === false && <span className="text-warn"> · no worker</span>}
              </label>
            ))}
          </fieldset>
        )}
      </div>
    </DropPlace>
  );
}
