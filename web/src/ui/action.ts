// Something that is asked of the server: whether it is under way, and why it was refused.
import { useState } from "react";
import { words } from "../api/problems";

export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const run = async (action: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setRefused(null);
    try {
      await action();
      return true;
    } catch (error) {
      setRefused(words(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, refused, run };
}
