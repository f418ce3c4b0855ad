/** A report: the page as one HTML file without scripts, or on paper. */

import type { Chart } from "../lib/charts";
import { chartSvg, isoTime } from "../lib/picture";

const LEFT_OUT = "script, link, header.bar, .skip, .actions, form, #page-problem, .crumb, .alert:not([role=note])";
// Opened on paper; a table of seconds would have many pages.
const OPENED = "main :is(.card details, .bench-caveats, .caveats):not([open], #time-table)";
const PAPER_PX = 680; // between the margins of A4
const HIDDEN = { width: PAPER_PX, height: PAPER_PX / 2 };

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

/** The page as text, with charts as SVG. */
export function reportOf(charts: readonly Chart[]): string {
  const page = document.documentElement.cloneNode(true) as HTMLElement;
  const drawn = [...document.querySelectorAll("canvas")];
  page.querySelectorAll("canvas").forEach((canvas, index) => {
    const chart = charts.find((each) => each.canvas === drawn[index]);
    const size = chart && chart.width > 0 ? chart : HIDDEN; // of a tab that is not chosen
    if (chart) canvas.parentElement?.replaceWith(figureOf(chart, size));
  });
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

/** The chart as a vector drawing, as wide as the page. */
function figureOf(chart: Chart, size: Parameters<typeof chartSvg>[1] = chart): HTMLElement {
  const figure = document.createElement("div");
  figure.className = "chart-drawing";
  figure.innerHTML = chartSvg(chart, size);
  figure.setAttribute("role", "img");
  figure.setAttribute("aria-label", chart.canvas.getAttribute("aria-label") ?? "");
  return figure;
}

/** On paper, drawings replace the charts: these have the width of the window, not that of the paper. */
function drawForPaper(chart: Chart): void {
  const height = Math.min(chart.height || HIDDEN.height, PAPER_PX / 2);
  chart.canvas.parentElement?.after(figureOf(chart, { width: PAPER_PX, height }));
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

function initPaper(charts: readonly Chart[]): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("is-printing");
    opened = [...document.querySelectorAll<HTMLDetailsElement>(OPENED)];
    for (const details of opened) details.open = true;
    charts.forEach(drawForPaper);
    document.querySelectorAll<HTMLTableElement>(".table-scroll table").forEach(fitToPaper);
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("is-printing");
    for (const details of opened) details.open = false;
    for (const drawing of document.querySelectorAll(".chart-drawing")) drawing.remove();
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

export function initReport(charts: readonly Chart[]): void {
  initPaper(charts);
  const save = document.querySelector<HTMLButtonElement>("[data-report]");
  if (save) {
    save.hidden = false;
    save.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([reportOf(charts)], { type: "text/html" }));
      const link = document.createElement("a");
      link.download = `${(save.dataset.report ?? "report").replace(/[^\p{L}\p{N}.-]+/gu, "-")}.html`;
      link.href = address;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    });
  }
  const print = document.querySelector<HTMLButtonElement>("[data-print]");
  if (print) {
    print.hidden = false;
    print.addEventListener("click", () => window.print());
  }
}
