// Where one can go, and how it is found by a few letters.

/** After the letter g. */
export const GOES: Record<string, string> = { c: "/", t: "/tasks", n: "/needs", s: "/schedules", u: "/usage" };

export type Command = { id: string; label: string; hint?: string; run: () => void };

/** How well the letters fit: those at the beginning of a word first; null if they do not stand in it in order. */
export function fits(label: string, wanted: string): number | null {
  const text = label.toLowerCase();
  const letters = wanted.toLowerCase().trim();
  if (letters === "") return 0;
  const at = text.indexOf(letters);
  if (at === 0) return 3;
  if (at > 0) return text[at - 1] === " " ? 2 : 1;
  let from = 0;
  for (const letter of letters) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return null;
  }
  return 0;
}

export function found(commands: readonly Command[], wanted: string): Command[] {
  return commands
    .map((command) => ({ command, rank: fits(command.label, wanted) }))
    .filter((each) => each.rank !== null)
    .sort((a, b) => (b.rank ?? 0) - (a.rank ?? 0))
    .map((each) => each.command);
}
