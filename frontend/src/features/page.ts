/** Features that any page may use. */

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

/** Times are relative, with the absolute time in the viewer's zone on hover; with `data-absolute` the other way round. */
export function initTimes(): void {
  paintTimes();
  window.setInterval(paintTimes, 10_000);
}

/** Also for times that were added to the page later. */
export function paintTimes(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>("time[datetime]")) {
    const at = new Date(time.dateTime);
    const ago = relative((Date.now() - at.getTime()) / 1000);
    if (time.hasAttribute("data-absolute")) {
      time.title = ago;
      continue;
    }
    time.textContent = ago;
    time.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  }
}

/** Buttons that copy the text of the element in their attribute. */
export function initCopy(root: ParentNode = document): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("[data-copy]")) {
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

/** Buttons that open the dialog in their attribute, and buttons in the dialog that close it. */
export function initDialogs(): void {
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const opens = event.target.closest<HTMLElement>("[data-dialog]")?.dataset.dialog;
    const dialog = opens ? document.getElementById(opens) : null;
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
    if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
  });
}

/** Filter forms are sent after each choice; empty fields are left out of the address. */
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

/** The menus of the user and of rows: a click elsewhere or Escape closes them. */
export function initMenus(): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>(".person-menu, .row-menu")) {
    document.addEventListener("click", (event) => {
      if (event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary")?.focus();
    });
  }
}
