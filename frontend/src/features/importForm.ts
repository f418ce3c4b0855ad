/**
 * Dropped or chosen files are packed and sent in portions, with progress. The labels in their paths and the first row of
 * a CSV file are shown at once.
 */

import { added, begun, importProblem, labelPreview } from "#payloads/imports";
import { type Chosen, fromDrop, fromInput } from "../lib/chosenFiles";
import { find, setText, showProblem } from "../lib/dom";
import { counted } from "../lib/format";
import { portions } from "../lib/portions";
import { packed } from "../lib/tar";
import { line, startColumnPreview } from "./importColumns";
import { Latest } from "./planPreview";

const PORTION_BYTES = 32 * 1024 * 1024;
const SAMPLE = 2000; // paths for the preview of labels, MAX_PATHS of the server
const PAUSE_MS = 250;
const FEW = 8; // paths that are shown unfolded

export function initImportForm(): void {
  const form = find("import-form", HTMLFormElement);
  if (!form) return;
  let chosen: Chosen[] = [];
  const take = (files: Chosen[]): void => {
    chosen = files;
    const bytes = files.reduce((sum, each) => sum + each.file.size, 0);
    setText(document.getElementById("import-chosen"), `${counted(files.length, "file")}, ${megabytes(bytes)} MB.`);
    const title = find("import-title", HTMLInputElement);
    if (title && title.value === "") title.value = (files[0]?.path.split("/")[0] ?? "").slice(0, 200);
    void preview.now();
    columns.now();
  };
  const preview = startPreview(form, () => chosen);
  const columns = startColumnPreview(form, () => chosen);
  listen(take);
  find("import-pattern", HTMLInputElement)?.addEventListener("input", preview.later);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen.length === 0) showProblem("Choose files, an archive or a folder.");
    else void send(form, chosen);
  });
}

function listen(take: (files: Chosen[]) => void): void {
  for (const id of ["import-files", "import-folder"]) {
    const input = find(id, HTMLInputElement);
    input?.addEventListener("change", () => input.files && take(fromInput(input.files)));
  }
  for (const label of document.querySelectorAll<HTMLElement>("[data-needs-script]")) label.hidden = false;
  find("import-folder", HTMLInputElement)?.removeAttribute("tabindex");
  const area = find("drop-area", HTMLDivElement);
  area?.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("is-over");
  });
  area?.addEventListener("dragleave", () => area.classList.remove("is-over"));
  area?.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("is-over");
    const items = event.dataTransfer?.items;
    if (!items) return;
    fromDrop(items).then(take, (error) => showProblem(`These files cannot be read: ${wordsOf(error)}`));
  });
}

interface Preview {
  readonly later: () => void;
  readonly now: () => Promise<void>;
}

function startPreview(form: HTMLFormElement, files: () => readonly Chosen[]): Preview {
  const latest = new Latest();
  let timer = 0;
  const now = async (): Promise<void> => {
    const ticket = latest.next();
    const data = new FormData(form);
    data.delete("file");
    data.set(
      "paths",
      files()
        .slice(0, SAMPLE)
        .map((each) => each.path)
        .join("\n"),
    );
    try {
      const found = labelPreview(await (await post(form.dataset.labelsUrl ?? "", data)).json());
      if (latest.isLatest(ticket)) paintPreview(found, files().length, now);
    } catch (error) {
      if (latest.isLatest(ticket)) showProblem(`The preview of the labels failed: ${wordsOf(error)}`);
    }
  };
  const later = (): void => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void now(), PAUSE_MS);
  };
  return { later, now };
}

function paintPreview(found: ReturnType<typeof labelPreview>, chosen: number, again: () => Promise<void>): void {
  const box = find("pattern-preview", HTMLDivElement);
  const pattern = find("import-pattern", HTMLInputElement);
  if (!box || !pattern) return;
  box.replaceChildren();
  if (found.problem !== "") box.append(line(found.problem, "worse"));
  else if (pattern.value.trim() !== "" && found.of > 0)
    box.append(line(`The pattern matches ${found.matched} of ${counted(found.of, "path")}.`, "small"));
  if (chosen > SAMPLE)
    box.append(line(`Only the first ${SAMPLE} of ${counted(chosen, "file")} are tried here.`, "small"));
  if (found.logs > 0)
    box.append(
      line(
        `Not counted: ${counted(found.logs, "log")} of fio. A log joins the test of its folder with the same name or factors.`,
        "small",
      ),
    );
  for (const { path, text } of found.examples) box.append(line(`${path}: ${text}`, "small"));
  if (found.unmatched.length > 0 && pattern.value.trim() !== "") box.append(withoutLabels(found.unmatched));
  if (found.suggested !== "" && pattern.value.trim() === "") {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm";
    button.textContent = `Use ${found.suggested}`;
    button.addEventListener("click", () => {
      pattern.value = found.suggested;
      void again();
    });
    box.append(button);
  }
}

/** The paths that get no labels, folded if they are many. */
function withoutLabels(paths: readonly string[]): HTMLElement {
  const all = document.createElement("details");
  all.open = paths.length <= FEW;
  const title = document.createElement("summary");
  title.className = "small";
  title.textContent = `Without labels: ${counted(paths.length, "path")} that the pattern does not match`;
  all.append(title, ...paths.map((path) => line(path, "small code")));
  return all;
}

/** Begins the import, sends portion after portion, ends it, and opens its page. */
async function send(form: HTMLFormElement, files: readonly Chosen[]): Promise<void> {
  const button = find("import-start", HTMLButtonElement);
  if (button) button.disabled = true;
  showProblem("");
  const data = new FormData(form);
  data.delete("file");
  const leaving = (event: BeforeUnloadEvent): void => event.preventDefault();
  window.addEventListener("beforeunload", leaving);
  try {
    const place = begun(await (await post(form.action, data)).json());
    const token = String(data.get("csrfmiddlewaretoken") ?? "");
    await sendPortions(place.files_url, token, files);
    const end = new FormData();
    end.set("csrfmiddlewaretoken", token);
    await post(place.end_url, end);
    window.removeEventListener("beforeunload", leaving);
    window.location.assign(place.url);
  } catch (error) {
    showProblem(`The import stopped. Sent files are stored. Import the same files again. Reason: ${wordsOf(error)}`);
    if (button) button.disabled = false;
  } finally {
    window.removeEventListener("beforeunload", leaving);
  }
}

async function sendPortions(url: string, token: string, files: readonly Chosen[]): Promise<void> {
  const total = files.reduce((sum, each) => sum + each.file.size, 0);
  let sent = 0;
  const counts = { files: 0, results: 0, refused: 0 };
  paintProgress(0, total, counts);
  for (const portion of portions(files, PORTION_BYTES)) {
    const data = new FormData();
    data.set("csrfmiddlewaretoken", token);
    data.set("file", packed(portion), "folder.tar");
    const now = added(await (await post(url, data)).json());
    sent += portion.reduce((sum, each) => sum + each.file.size, 0);
    counts.files += now.files;
    counts.results += now.results;
    counts.refused += now.refused;
    paintProgress(sent, total, counts);
  }
}

function paintProgress(sent: number, total: number, counts: { files: number; results: number; refused: number }): void {
  const box = find("import-progress", HTMLDivElement);
  if (!box) return;
  box.hidden = false;
  const bar = box.querySelector("progress");
  if (bar) bar.value = total > 0 ? sent / total : 1;
  const left = counts.refused > 0 ? `, ${counted(counts.refused, "file")} left out` : "";
  const became = `${counted(counts.files, "file")}, ${counted(counts.results, "result")}${left}`;
  setText(box.querySelector("p"), `${megabytes(sent)} of ${megabytes(total)} MB sent: ${became}.`);
}

async function post(url: string, data: FormData): Promise<Response> {
  const response = await fetch(url, { method: "POST", body: data, headers: { Accept: "application/json" } });
  if (response.status === 422) throw new Error(importProblem(await response.json()).problem);
  if (!response.ok) throw new Error(`the server answered ${response.status}.`);
  return response;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : "unknown";
}
