/** Factors as rows: levels picked from names, rows dragged to another place. The server makes the rows. */

/** The typed levels with one name put in or taken out, the others as they were. */
export function toggled(levels: string, name: string): string {
  const names = levels
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "");
  return (names.includes(name) ? names.filter((each) => each !== name) : [...names, name]).join(", ");
}

function initChoices(root: ParentNode): void {
  for (const box of root.querySelectorAll<HTMLElement>("[data-choices]")) {
    const input = box.parentElement?.querySelector("input");
    if (!input) continue;
    const buttons = [...box.querySelectorAll<HTMLButtonElement>("[data-choice]")];
    const mark = (): void => {
      const chosen = new Set(input.value.split(",").map((text) => text.trim()));
      for (const button of buttons) {
        button.setAttribute("aria-pressed", String(chosen.has(button.dataset.choice ?? "")));
      }
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        input.value = toggled(input.value, button.dataset.choice ?? "");
        input.dispatchEvent(new Event("input", { bubbles: true }));
      });
    }
    input.addEventListener("input", mark);
    box.hidden = false;
    mark();
  }
}

type Move = (step: string) => void;

/** Rows are lifted by their grip only, so that text in the fields can still be selected. */
function initDragging(root: ParentNode, move: Move): void {
  for (const block of root.querySelectorAll<HTMLElement>("[data-block]")) {
    let lifted: HTMLElement | null = null;
    const rows = (): HTMLElement[] => [...block.querySelectorAll<HTMLElement>("[data-row]")];
    for (const row of rows()) {
      const grip = row.querySelector<HTMLElement>(".grip");
      grip?.addEventListener("pointerdown", () => {
        row.draggable = true;
      });
      row.addEventListener("dragstart", () => {
        lifted = row;
        row.classList.add("is-lifted");
      });
      row.addEventListener("dragend", () => {
        row.draggable = false;
        row.classList.remove("is-lifted");
        lifted = null;
      });
      row.addEventListener("dragover", (event) => {
        if (lifted && lifted !== row) event.preventDefault();
      });
      row.addEventListener("drop", (event) => {
        if (!lifted || lifted === row) return;
        event.preventDefault();
        move(`move:${block.dataset.block}:${lifted.dataset.row}:${row.dataset.row}`);
      });
    }
  }
}

/** To be called again whenever the server's rows were put in anew. */
export function initPlanRows(root: ParentNode, move: Move): void {
  initChoices(root);
  initDragging(root, move);
}
