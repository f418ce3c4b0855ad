/** A fresh page, but not under the hands of somebody who reads a dialog or writes a note. */
export function reloadWhenFree(): boolean {
  const written = [...document.querySelectorAll("textarea")].some((box) => box.value !== box.defaultValue);
  if (written || document.querySelector("dialog[open]")) return false;
  window.location.reload();
  return true;
}
