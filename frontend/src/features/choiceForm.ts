/** Forms that are sent automatically after a choice, but never while the person is still choosing. */

const KEPT = "sweetspot-choice";

function nameOf(element: Element | null): string {
  const pick = element?.closest<HTMLElement>("[data-pick]");
  return pick?.id || (pick?.querySelector("input")?.name ?? element?.id ?? "");
}

/** Sends the form; the next page restores the focus. */
function send(form: HTMLFormElement, from: Element | null): void {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ path: location.pathname, name: nameOf(from), top: window.scrollY }));
  } catch {
    // storage is disabled: the focus is at the top, as on any page
  }
  form.requestSubmit();
}

function takeBackFocus(form: HTMLFormElement): void {
  let kept: { path?: string; name?: string; top?: number } = {};
  try {
    kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}") as typeof kept;
    sessionStorage.removeItem(KEPT);
  } catch {
    return;
  }
  if (kept.path !== location.pathname || !kept.name) return;
  const input = form.querySelector(`[data-pick] input[name="${CSS.escape(kept.name)}"]`);
  const own = document.getElementById(kept.name);
  const pick = input?.closest("[data-pick]") ?? own?.closest("[data-pick]");
  const target = pick?.querySelector("summary") ?? own;
  target?.focus({ preventScroll: true });
  window.scrollTo(0, kept.top ?? 0);
}

/** With the keyboard, a select changes with every key, so its value is sent on blur or Enter. */
function listenToSelect(form: HTMLFormElement, select: HTMLSelectElement): void {
  let byKey = false;
  let changed = false;
  select.addEventListener("keydown", (event) => {
    byKey = event.key !== "Enter";
    if (event.key === "Enter" && changed) send(form, select);
  });
  select.addEventListener("pointerdown", () => {
    byKey = false;
  });
  select.addEventListener("change", () => {
    changed = true;
    if (!byKey) send(form, select);
  });
  select.addEventListener("blur", () => {
    if (changed) send(form, select);
  });
}

/** A list of check boxes is sent when it is closed. */
function listenToPick(form: HTMLFormElement, pick: HTMLDetailsElement): void {
  let changed = false;
  pick.addEventListener("change", () => {
    changed = true;
  });
  pick.addEventListener("toggle", (event) => {
    if (event.target === pick && !pick.open && changed) send(form, pick);
  });
  pick.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !pick.open) return;
    event.preventDefault();
    pick.open = false;
    pick.querySelector("summary")?.focus();
  });
  document.addEventListener("click", (event) => {
    if (pick.open && event.target instanceof Node && !pick.contains(event.target)) pick.open = false;
  });
}

export function initChoiceForms(): void {
  for (const form of document.querySelectorAll<HTMLFormElement>("form[data-choice]")) {
    for (const select of form.querySelectorAll("select")) {
      const other = document.getElementById(select.dataset.with ?? "");
      if (other) select.addEventListener("change", () => other.focus());
      else listenToSelect(form, select);
    }
    for (const pick of form.querySelectorAll<HTMLDetailsElement>("details[data-pick]")) listenToPick(form, pick);
    for (const box of form.querySelectorAll<HTMLInputElement>("input[type=checkbox]")) {
      if (!box.closest("[data-pick]")) box.addEventListener("change", () => send(form, box));
    }
    form.addEventListener("formdata", (event) => {
      for (const [key, value] of [...event.formData.entries()]) {
        if (value !== "") continue;
        const kept = event.formData.getAll(key).filter((each) => each !== "");
        event.formData.delete(key);
        for (const each of kept) event.formData.append(key, each);
      }
    });
    takeBackFocus(form);
  }
}
