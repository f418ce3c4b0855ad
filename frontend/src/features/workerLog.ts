/** The worker's log on the page of its host: new lines are appended. */

import { type LogTailLine, logTail } from "#payloads/hosts";
import { fetchJson, startPolling } from "../lib/poll";
import { relative } from "./page";

const KEPT = 500;

export function initWorkerLog(): void {
  const body = document.getElementById("worker-log");
  const box = body?.closest<HTMLElement>(".table-scroll");
  const url = body?.dataset.url;
  if (!body || !box || !url) return;
  let last = Number(body.dataset.last ?? "0");
  const toEnd = (): void => {
    box.scrollTop = box.scrollHeight;
  };
  toEnd();
  box.closest("details")?.addEventListener("toggle", toEnd);
  startPolling({
    visibleMs: 3000,
    hiddenMs: 30_000,
    exchange: async (signal) => {
      const tail = logTail(await fetchJson(`${url}&after=${last}`, signal));
      last = tail.last;
      if (tail.lines.length > 0) append(body, box, tail.lines);
      return "later";
    },
    failed: () => undefined, // keep the lines; the next exchange tries again
  });
}

/** Scrolls to new lines only if the end of the log is visible. */
function append(body: HTMLElement, box: HTMLElement, lines: readonly LogTailLine[]): void {
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  document.getElementById("worker-log-empty")?.remove();
  body.append(...lines.map(row));
  while (body.children.length > KEPT) body.firstElementChild?.remove();
  if (atEnd) box.scrollTop = box.scrollHeight;
}

function row(line: LogTailLine): HTMLTableRowElement {
  const made = document.createElement("tr");
  const at = document.createElement("time");
  at.dateTime = line.at;
  at.textContent = relative((Date.now() - new Date(line.at).getTime()) / 1000);
  at.title = new Date(line.at).toLocaleString();
  const about = document.createElement("a");
  about.href = line.url;
  about.textContent = line.about;
  made.append(cell(at, "nowrap"), cell(badge(line.level), ""), cell(line.text, "log-text"));
  made.append(cell(line.about ? about : "", "nowrap"));
  return made;
}

function cell(content: Node | string, name: string): HTMLTableCellElement {
  const made = document.createElement("td");
  made.className = name;
  made.append(content);
  return made;
}

function badge(level: string): HTMLSpanElement {
  const made = document.createElement("span");
  made.className = `log-${level}`;
  made.textContent = level;
  return made;
}
