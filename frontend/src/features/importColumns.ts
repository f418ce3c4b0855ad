/** The first row of the first CSV file that was chosen, as its columns are read. */

import { columnPreview } from "#payloads/imports";
import type { Chosen } from "../lib/chosenFiles";
import { find } from "../lib/dom";
import { Latest } from "./planPreview";

const HEAD_BYTES = 32 * 1024;
const PAUSE_MS = 250;
const TABLE = /\.(csv|tsv|txt)$/i;

/** Shows the preview after each change of the field. `now` shows it for files that were just chosen. */
export function startColumnPreview(form: HTMLFormElement, files: () => readonly Chosen[]): { now: () => void } {
  const field = find("import-columns", HTMLTextAreaElement);
  const latest = new Latest();
  let timer = 0;
  const show = async (): Promise<void> => {
    const ticket = latest.next();
    const table = files().find((each) => TABLE.test(each.path));
    const lines = table && field ? await linesOf(form, field, table) : [];
    if (latest.isLatest(ticket)) find("columns-preview", HTMLDivElement)?.replaceChildren(...lines);
  };
  field?.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void show(), PAUSE_MS);
  });
  return { now: () => void show() };
}

async function linesOf(form: HTMLFormElement, field: HTMLTextAreaElement, table: Chosen): Promise<HTMLElement[]> {
  try {
    const data = new FormData();
    data.set("csrfmiddlewaretoken", String(new FormData(form).get("csrfmiddlewaretoken") ?? ""));
    data.set("columns", field.value);
    data.set("head", await table.file.slice(0, HEAD_BYTES).text());
    const answer = await fetch(form.dataset.columnsUrl ?? "", { method: "POST", body: data });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}.`);
    const found = columnPreview(await answer.json());
    if (found.columns.length === 0) return [];
    return [
      line(`Columns of ${table.path}: ${found.columns.join(", ")}`, "small"),
      found.problem === "" ? line(`First row: ${found.row}`, "small") : line(found.problem, "small worse"),
    ];
  } catch (error) {
    return [line(`The preview of the columns failed: ${error instanceof Error ? error.message : "unknown"}`, "worse")];
  }
}

export function line(text: string, kind: string): HTMLElement {
  const made = document.createElement("div");
  made.className = kind;
  made.textContent = text;
  return made;
}
