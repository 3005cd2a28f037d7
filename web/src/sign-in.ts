// A link with a token behind its # signs this browser in, once: the token becomes a cookie that no script can read.
import { api } from "./api/client";
import { words } from "./api/problems";

/** Why the token was refused; null if there was none, or it was taken. */
export async function signIn(): Promise<string | null> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return null;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await api.post("login", { token });
    return null;
  } catch (error) {
    return words(error);
  }
}
