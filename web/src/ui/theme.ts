// Light or dark: as the system says, until a person chooses.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const NAME = "outlast.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(NAME);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(): void {
  const chosen = chosenTheme();
  document.documentElement.dataset.theme = chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, theme);
  applyTheme();
  for (const each of listeners) each();
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
}

system.addEventListener("change", applyTheme);
