/** A report: the page as one HTML file without scripts, or on paper. */

import { download } from "./savePicture";

const LEFT_OUT = "script, link, header.bar, .skip, .actions, form, #page-problem, .crumb, .alert:not([role=note])";
// Opened on paper; a table of seconds would have many pages.
const OPENED = "main :is(.card details, .bench-caveats, .caveats):not([open], #time-table)";
const PAPER_PX = 680; // between the margins of A4

/** The rules that the document uses, so that the file does not contain the style of all pages. */
function usedRules(rules: CSSRuleList, page: ParentNode): string[] {
  return [...rules].flatMap((rule) => {
    if (rule instanceof CSSStyleRule) return isUsed(rule.selectorText, page) ? [rule.cssText] : [];
    if (rule instanceof CSSPageRule) return [rule.cssText];
    if (rule instanceof CSSMediaRule) {
      const inside = usedRules(rule.cssRules, page);
      return inside.length > 0 ? [`@media ${rule.conditionText} { ${inside.join("\n")} }`] : [];
    }
    return [];
  });
}

function isUsed(selector: string, page: ParentNode): boolean {
  try {
    return page.querySelector(selector.replace(/::?[a-z-]+(\([^)]*\))?/g, "") || "*") !== null;
  } catch {
    return true; // too unusual to be simplified
  }
}

/** 2026-11-23 09:05 UTC. */
export function isoTime(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** The page as text; drawings stand in place of charts, as on paper. */
export function reportOf(): string {
  const page = document.documentElement.cloneNode(true) as HTMLElement;
  page.classList.add("is-saved");
  for (const canvas of page.querySelectorAll("canvas")) canvas.remove();
  for (const element of page.querySelectorAll(LEFT_OUT)) element.remove();
  for (const caveats of page.querySelectorAll<HTMLDetailsElement>(".bench-caveats")) caveats.open = true; // for paper
  for (const button of page.querySelectorAll("button")) button.replaceWith(asText(button));
  const style = document.createElement("style");
  style.textContent = [...document.styleSheets].flatMap((sheet) => usedRules(sheet.cssRules, page)).join("\n");
  page.querySelector("head")?.append(style);
  const foot = document.createElement("p");
  foot.className = "muted";
  foot.textContent = `Saved on ${isoTime(new Date())}.`;
  page.querySelector("main")?.append(foot);
  return `<!doctype html>\n${page.outerHTML}\n`;
}

/** A table that is wider than the paper becomes smaller, because paper cannot be scrolled. */
function fitToPaper(table: HTMLTableElement): void {
  const width = table.style.width;
  table.style.width = "min-content";
  const share = PAPER_PX / table.offsetWidth;
  table.style.width = width;
  const fitted = table.closest<HTMLElement>(".heat-frame") ?? table;
  if (share < 1) fitted.style.zoom = String(share);
}

function initPaper(): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("is-printing");
    opened = [...document.querySelectorAll<HTMLDetailsElement>(OPENED)];
    for (const details of opened) details.open = true;
    document.querySelectorAll<HTMLTableElement>(".table-scroll table").forEach(fitToPaper);
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("is-printing");
    for (const details of opened) details.open = false;
    for (const fitted of document.querySelectorAll<HTMLElement>(".table-scroll table, .heat-frame")) {
      fitted.style.zoom = "";
    }
  });
}

/** Buttons do nothing without scripts. */
function asText(button: HTMLElement): HTMLElement {
  const text = document.createElement("span");
  text.className = button.className;
  text.append(...button.childNodes);
  return text;
}

export function initReport(): void {
  initPaper();
  const save = document.querySelector<HTMLButtonElement>("[data-report]");
  if (save) {
    save.hidden = false;
    save.addEventListener("click", () => {
      download(save.dataset.report ?? "report", "html", new Blob([reportOf()], { type: "text/html" }));
    });
  }
  const print = document.querySelector<HTMLButtonElement>("[data-print]");
  if (print) {
    print.hidden = false;
    print.addEventListener("click", () => window.print());
  }
}
