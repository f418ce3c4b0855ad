/** Reloads the page, but not while a dialog is open or a note is being written. */
export function reloadWhenFree(): boolean {
  const written = [...document.querySelectorAll("textarea")].some((box) => box.value !== box.defaultValue);
  if (written || document.querySelector("dialog[open]")) return false;
  window.location.reload();
  return true;
}
