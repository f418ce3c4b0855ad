/** The theme: light, dark or the system's; stored in this browser. `entries/theme.ts` applies it before the first paint. */

export type Choice = "auto" | "light" | "dark";
const KEY = "sweetspot-theme";
const NEXT: Readonly<Record<Choice, Choice>> = { auto: "light", light: "dark", dark: "auto" };
const WORDS: Readonly<Record<Choice, string>> = {
  auto: "Theme: system default",
  light: "Theme: light",
  dark: "Theme: dark",
};
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

export function readChoice(): Choice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "auto";
  } catch {
    return "auto"; // storage is disabled in this browser
  }
}

export function applyChoice(choice: Choice): void {
  const dark = choice === "dark" || (choice === "auto" && systemDark.matches);
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
  document.dispatchEvent(new Event("sweetspot:theme"));
}

function keep(choice: Choice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // not stored, but applied to this page
  }
}

export function initThemeToggle(): void {
  const button = document.getElementById("theme-toggle");
  if (!button) return;
  const name = (choice: Choice): void => {
    button.dataset.choice = choice;
    button.textContent = WORDS[choice];
  };
  name(readChoice());
  button.addEventListener("click", () => {
    const choice = NEXT[readChoice()];
    keep(choice);
    name(choice);
    applyChoice(choice);
  });
  systemDark.addEventListener("change", () => applyChoice(readChoice()));
}

/** The theme buttons on the page Account. */
export function initThemeChoice(): void {
  for (const radio of document.querySelectorAll<HTMLInputElement>("#theme-choice input")) {
    radio.checked = radio.value === readChoice();
    radio.addEventListener("change", () => {
      const choice = radio.value === "light" || radio.value === "dark" ? radio.value : "auto";
      keep(choice);
      applyChoice(choice);
    });
  }
}
