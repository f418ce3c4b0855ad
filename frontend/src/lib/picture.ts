/** Charts and tables as one picture, PNG or SVG, with title, legend, date and address. */

import type { ChartConfiguration } from "chart.js";
import { Chart, given } from "./charts";
import { themed } from "./colours";
import { asContext, SvgPen } from "./svgPen";

export interface PictureKey {
  readonly name: string;
  readonly colour: string;
  readonly dashed: boolean;
}

export interface PicturePart {
  readonly title: string;
  readonly of: Chart | HTMLTableElement;
}

export interface Picture {
  readonly title: string;
  readonly note: string;
  readonly key: readonly PictureKey[];
  readonly parts: readonly PicturePart[];
}

const MARGIN = 16;
const LINE = 18;
const FONT = '"Inter Variable", Arial, "Liberation Sans", sans-serif';

interface Size {
  readonly width: number;
  readonly height: number;
}

interface Words {
  readonly text: string;
  readonly size: number;
  readonly bold?: boolean;
}

/** Cuts a text that has no spaces, such as an address, into lines of at most `width`. */
export function cut(text: string, width: number, widthOf: (text: string) => number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest !== "") {
    let length = rest.length;
    while (length > 1 && widthOf(rest.slice(0, length)) > width) length = Math.floor(length * 0.9);
    lines.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
  return lines;
}

/** 2026-11-23 09:05 UTC. */
export function isoTime(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Draws from top to bottom. `place` draws a part at a position. */
class Sheet {
  private top = MARGIN;

  constructor(
    private readonly pen: CanvasRenderingContext2D,
    private readonly size: Size,
    private readonly place: (part: PicturePart, left: number, top: number) => void,
  ) {
    pen.fillStyle = themed("--tblr-bg-surface") || "#ffffff";
    pen.fillRect(0, 0, size.width, size.height);
    pen.textBaseline = "top";
  }

  draw(picture: Picture): void {
    this.words({ text: picture.title, size: 16, bold: true });
    this.words({ text: picture.note, size: 12 });
    this.key(picture.key);
    for (const part of picture.parts) {
      if (part.title) this.words({ text: part.title, size: 13, bold: true });
      this.place(part, MARGIN, this.top);
      this.top += sizeOf(part).height + 8;
    }
    this.words({ text: `Sweetspot, ${isoTime(new Date())}`, size: 11 });
    this.words({ text: location.href, size: 11 });
  }

  private get width(): number {
    return this.size.width - 2 * MARGIN;
  }

  private words({ text, size, bold }: Words): void {
    this.pen.fillStyle = bold ? themed("--tblr-body-color") : themed("--ss-chart-text");
    this.pen.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    for (const line of cut(text, this.width, (each) => this.pen.measureText(each).width)) {
      this.pen.fillText(line, MARGIN, this.top);
      this.top += size + 5;
    }
  }

  private key(entries: readonly PictureKey[]): void {
    let left = MARGIN;
    this.pen.font = `12px ${FONT}`;
    for (const entry of entries) {
      const width = 16 + this.pen.measureText(entry.name).width + 14;
      if (left > MARGIN && left + width > this.width + MARGIN) {
        left = MARGIN;
        this.top += LINE;
      }
      this.pen.fillStyle = entry.colour;
      if (entry.dashed) for (const dash of [0, 4, 8]) this.pen.fillRect(left + dash, this.top + 6, 3, 2);
      else this.pen.fillRect(left, this.top + 1, 11, 11);
      this.pen.fillStyle = themed("--tblr-body-color");
      this.pen.fillText(entry.name, left + 16, this.top);
      left += width;
    }
    this.top += entries.length > 0 ? LINE + 4 : 0;
  }
}

function sizeOf({ of }: PicturePart): Size {
  const { width, height } = of instanceof HTMLTableElement ? of.getBoundingClientRect() : of;
  return { width, height };
}

function sizeOfPicture(picture: Picture): Size {
  const inside = Math.max(480, ...picture.parts.map((part) => sizeOf(part).width));
  const parts = picture.parts.reduce((sum, part) => sum + sizeOf(part).height + 8 + (part.title ? 19 : 0), 0);
  const keyLines = Math.ceil(picture.key.reduce((sum, each) => sum + 34 + each.name.length * 8, 0) / inside);
  const addressLines = Math.ceil((location.href.length * 6.6) / inside) + 1;
  const height = 2 * MARGIN + 23 + 20 + keyLines * LINE + 6 + parts + (addressLines + 1) * 16;
  return { width: inside + 2 * MARGIN, height };
}

function download(picture: Picture, ending: string, address: string): void {
  const link = document.createElement("a");
  link.download = `${picture.title.replace(/[^\p{L}\p{N}.-]+/gu, "-")}.${ending}`;
  link.href = address;
  link.click();
}

export function savePng(picture: Picture): void {
  const scale = window.devicePixelRatio || 1;
  const size = sizeOfPicture(picture);
  const canvas = document.createElement("canvas");
  canvas.width = size.width * scale;
  canvas.height = size.height * scale;
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("This browser cannot draw pictures.");
  pen.scale(scale, scale);
  const place = (part: PicturePart, left: number, top: number): void => {
    if (part.of instanceof HTMLTableElement) paintTable(pen, part.of, left, top);
    else pen.drawImage(part.of.canvas, left, top, part.of.width, part.of.height);
  };
  new Sheet(pen, size, place).draw(picture);
  download(picture, "png", canvas.toDataURL("image/png"));
}

export function saveSvg(picture: Picture): void {
  const size = sizeOfPicture(picture);
  const pen = new SvgPen(document.createElement("canvas"));
  const place = (part: PicturePart, left: number, top: number): void => {
    if (part.of instanceof HTMLTableElement) paintTable(asContext(pen), part.of, left, top);
    else pen.embed(chartContent(part.of), left, top);
  };
  new Sheet(asContext(pen), size, place).draw(picture);
  const blob = new Blob([svgOf(pen.content(), size)], { type: "image/svg+xml" });
  const address = URL.createObjectURL(blob);
  download(picture, "svg", address);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function svgOf(content: string, { width, height }: Size): string {
  const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box}>\n${content}\n</svg>\n`;
}

/** A chart as an SVG image, by default as large as on the screen. */
export function chartSvg(chart: Chart, size: Size = chart): string {
  return svgOf(chartContent(chart, size), size);
}

/** Draws the chart a second time, with a pen that records. `segment` makes lines avoid Path2D, which cannot be read. */
function chartContent(chart: Chart, { width, height }: Size = chart): string {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = new SvgPen(canvas);
  canvas.getContext = (() => asContext(pen)) as unknown as HTMLCanvasElement["getContext"];
  const made = {
    type: (chart.config as { type?: unknown }).type,
    plugins: (chart.config as { plugins?: unknown }).plugins,
    data: { ...chart.data, datasets: chart.data.datasets.map((each) => ({ ...each, segment: {} })) },
    options: { ...given(chart), responsive: false, animation: false, devicePixelRatio: 1, events: [] },
  };
  const copy = new Chart(canvas, made as unknown as ChartConfiguration);
  chart.data.datasets.forEach((_, index) => {
    copy.setDatasetVisibility(index, chart.isDatasetVisible(index));
  });
  copy.update("none");
  const content = pen.content();
  copy.destroy();
  return content;
}

/** A visible table, including the colours of its cells. */
function paintTable(pen: CanvasRenderingContext2D, table: HTMLTableElement, left: number, top: number): void {
  const box = table.getBoundingClientRect();
  pen.save();
  pen.translate(left, top);
  pen.textBaseline = "middle";
  for (const cell of table.querySelectorAll<HTMLElement>("th, td, caption")) paintCell(pen, cell, box);
  for (const lines of table.parentElement?.querySelectorAll<SVGElement>(":scope > svg") ?? []) {
    const at = lines.getBoundingClientRect();
    pen.translate(at.left - box.left, at.top - box.top);
    paintLines(pen, lines);
  }
  pen.restore();
}

/** The lines of equal value over a heat map. */
function paintLines(pen: CanvasRenderingContext2D, lines: SVGElement): void {
  const number = (of: Element, name: string): number => Number(of.getAttribute(name));
  for (const [colour, width] of [
    ["#ffffff", 4],
    ["#111827", 1.5],
  ] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    for (const line of lines.querySelectorAll("line")) {
      pen.beginPath();
      pen.moveTo(number(line, "x1"), number(line, "y1"));
      pen.lineTo(number(line, "x2"), number(line, "y2"));
      pen.stroke();
    }
  }
  pen.textAlign = "center";
  pen.font = `600 11px ${FONT}`;
  for (const label of lines.querySelectorAll("text")) {
    const text = label.textContent ?? "";
    const width = pen.measureText(text).width + 6;
    pen.fillStyle = "#ffffff";
    pen.fillRect(number(label, "x") - width / 2, number(label, "y") - 7, width, 14);
    pen.fillStyle = "#111827";
    pen.fillText(text, number(label, "x"), number(label, "y"));
  }
}

function paintCell(pen: CanvasRenderingContext2D, cell: HTMLElement, box: DOMRect): void {
  const style = getComputedStyle(cell);
  const at = cell.getBoundingClientRect();
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(at.left - box.left, at.top - box.top, at.width, at.height);
  pen.fillStyle = style.color;
  pen.font = `${style.fontWeight} ${style.fontSize} ${FONT}`;
  const right = style.textAlign === "right" || style.textAlign === "end";
  const centred = style.textAlign === "center";
  pen.textAlign = centred ? "center" : right ? "right" : "left";
  const middle = (at.left + at.right) / 2 - box.left;
  const x = centred ? middle : right ? at.right - box.left - 6 : at.left - box.left + 6;
  pen.fillText(cell.dataset.text ?? cell.firstChild?.textContent ?? "", x, at.top - box.top + at.height / 2);
}
