/** Small things that every page may have. */

const STEPS: readonly (readonly [number, Intl.RelativeTimeFormatUnit])[] = [
  [86400 * 365, "year"],
  [86400 * 30, "month"],
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** "3 minutes ago", from seconds since then (negative: in the future). */
export function relative(secondsAgo: number): string {
  const [size, unit] = STEPS.find(([step]) => Math.abs(secondsAgo) >= step) ?? [1, "second"];
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-Math.trunc(secondsAgo / size), unit);
}

/** Times are relative, with the absolute one in the viewer's zone on hover. */
export function initTimes(): void {
  const times = [...document.querySelectorAll("time[datetime]")].filter(
    (element) => element instanceof HTMLTimeElement,
  );
  if (times.length === 0) return;
  const paint = (): void => {
    for (const time of times) {
      const at = new Date(time.dateTime);
      time.textContent = relative((Date.now() - at.getTime()) / 1000);
      time.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    }
  };
  paint();
  window.setInterval(paint, 10_000);
}

/** Buttons that copy the text of the element they name. */
export function initCopy(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy ?? "")?.textContent ?? "";
      const label = button.textContent;
      try {
        await navigator.clipboard.writeText(text.trim());
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select and copy by hand"; // no clipboard without HTTPS
      }
      window.setTimeout(() => {
        button.textContent = label;
      }, 2000);
    });
  }
}

/** Buttons that open the dialog they name, and buttons in it that close it. */
export function initDialogs(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-dialog]")) {
    const dialog = document.getElementById(button.dataset.dialog ?? "");
    if (!(dialog instanceof HTMLDialogElement)) continue;
    button.addEventListener("click", () => dialog.showModal());
    for (const close of dialog.querySelectorAll("[data-close]")) close.addEventListener("click", () => dialog.close());
  }
}

/** Forms of filters are sent as soon as a choice is made; empty fields stay out of the address. */
export function initFilters(): void {
  for (const form of document.querySelectorAll<HTMLFormElement>("form[data-filters]")) {
    form.addEventListener("change", () => form.requestSubmit());
    form.addEventListener("formdata", (event) => {
      for (const [key, value] of [...event.formData.entries()]) {
        if (value === "") event.formData.delete(key);
      }
    });
  }
}

/** The list of pages on a narrow screen. */
export function initMenu(): void {
  const button = document.getElementById("menu-toggle");
  const menu = document.getElementById("menu");
  if (!button || !menu) return;
  button.addEventListener("click", () => {
    const open = menu.classList.toggle("is-open");
    button.setAttribute("aria-expanded", String(open));
  });
}
