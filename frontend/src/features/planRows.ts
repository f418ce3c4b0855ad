/** Rows of factors: choose levels from names, and drag rows. The server renders the rows. */

/** The typed levels with one name added or removed. */
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

/** The row of the block at this height, if the pointer is over the block's rows. */
function rowAt(rows: readonly HTMLElement[], y: number): HTMLElement | undefined {
  return rows.find((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return top <= y && y < bottom;
  });
}

/**
 * Rows are dragged only by their handle, so that text in the fields can still be selected. The handle captures the
 * pointer until it is released; only the rows at that time count, so an update by the server in between moves nothing.
 */
function initDragging(root: ParentNode, move: Move): void {
  for (const block of root.querySelectorAll<HTMLElement>("[data-block]")) {
    const rows = [...block.querySelectorAll<HTMLElement>("[data-row]")];
    for (const row of rows) {
      const grip = row.querySelector<HTMLElement>(".grip");
      grip?.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || !event.isPrimary) return;
        event.preventDefault(); // do not select text while dragging
        drag(block.dataset.block ?? "", row, rows, grip, event.pointerId, move);
      });
    }
  }
}

function drag(
  block: string,
  row: HTMLElement,
  rows: readonly HTMLElement[],
  grip: HTMLElement,
  pointer: number,
  move: Move,
): void {
  const ended = new AbortController();
  const listen = { signal: ended.signal };
  const mark = (over: HTMLElement | undefined): void => {
    for (const each of rows) each.classList.toggle("is-over", each === over && each !== row);
  };
  const end = (): void => {
    ended.abort();
    row.classList.remove("is-lifted");
    mark(undefined);
  };
  row.classList.add("is-lifted");
  grip.setPointerCapture(pointer);
  grip.addEventListener("pointermove", (event) => mark(rowAt(rows, event.clientY)), listen);
  grip.addEventListener(
    "pointerup",
    (event) => {
      const over = rowAt(rows, event.clientY);
      end();
      if (over && over !== row && row.isConnected) move(`move:${block}:${row.dataset.row}:${over.dataset.row}`);
    },
    listen,
  );
  grip.addEventListener("lostpointercapture", end, listen);
  document.addEventListener("keydown", (event) => event.key === "Escape" && end(), listen);
}

/** Call it again after each update of the rows. */
export function initPlanRows(root: ParentNode, move: Move): void {
  initChoices(root);
  initDragging(root, move);
}
