/** Tables with `data-sort`: a click or Enter on the head of a column sorts the rows by their `data-value`. */

type Direction = "ascending" | "descending";

/** Numbers in order; missing values are last in both directions. */
export function ordered<T>(rows: readonly T[], numberOf: (row: T) => number | null, direction: Direction): T[] {
  const sign = direction === "ascending" ? 1 : -1;
  return [...rows].sort((one, other) => {
    const [a, b] = [numberOf(one), numberOf(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b);
  });
}

function valueAt(row: HTMLTableRowElement, column: number): number | null {
  const text = row.cells[column]?.dataset.value;
  return text === undefined || text === "" ? null : Number(text);
}

function sort(table: HTMLTableElement, head: HTMLElement): void {
  const direction: Direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  const column = Number(head.dataset.column);
  const body = table.tBodies[0];
  body?.append(...ordered([...body.rows], (row) => valueAt(row, column), direction));
}

/** The text of a head becomes a button, so that the keyboard reaches it. */
function addButton(table: HTMLTableElement, head: HTMLElement): void {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort-button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(table, head));
  head.append(button);
}

export function initSortTables(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>("table[data-sort]")) {
    for (const head of table.querySelectorAll<HTMLElement>("th[data-column]")) addButton(table, head);
  }
}
