/** Charts and tables as one picture with title, legend, date and address. */

import { themed } from "./colours";

export interface PictureKey {
  readonly name: string;
  readonly colour: string;
}

export interface PicturePart {
  readonly title: string;
  readonly canvas: HTMLCanvasElement;
}

export interface Picture {
  readonly title: string;
  readonly note: string;
  readonly key: readonly PictureKey[];
  readonly parts: readonly PicturePart[];
}

const MARGIN = 16;
const LINE = 18;
const FONT = 'system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif';

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

class Sheet {
  private readonly canvas = document.createElement("canvas");
  private readonly pen: CanvasRenderingContext2D;
  private top = MARGIN;

  constructor(
    private readonly width: number,
    height: number,
    private readonly scale: number,
  ) {
    this.canvas.width = (width + 2 * MARGIN) * scale;
    this.canvas.height = height * scale;
    const pen = this.canvas.getContext("2d");
    if (!pen) throw new Error("This browser cannot draw pictures.");
    this.pen = pen;
    pen.scale(scale, scale);
    pen.fillStyle = themed("--tblr-bg-surface") || "#ffffff";
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    pen.textBaseline = "top";
  }

  words({ text, size, bold }: Words): void {
    this.pen.fillStyle = bold ? themed("--tblr-body-color") : themed("--ss-chart-text");
    this.pen.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    for (const line of cut(text, this.width, (each) => this.pen.measureText(each).width)) {
      this.pen.fillText(line, MARGIN, this.top);
      this.top += size + 5;
    }
  }

  key(entries: readonly PictureKey[]): void {
    let left = MARGIN;
    this.pen.font = `12px ${FONT}`;
    for (const entry of entries) {
      const width = 16 + this.pen.measureText(entry.name).width + 14;
      if (left > MARGIN && left + width > this.width + MARGIN) {
        left = MARGIN;
        this.top += LINE;
      }
      this.pen.fillStyle = entry.colour;
      this.pen.fillRect(left, this.top + 1, 11, 11);
      this.pen.fillStyle = themed("--tblr-body-color");
      this.pen.fillText(entry.name, left + 16, this.top);
      left += width;
    }
    this.top += entries.length > 0 ? LINE + 4 : 0;
  }

  image(canvas: HTMLCanvasElement): void {
    const height = canvas.height / this.scale;
    this.pen.drawImage(canvas, MARGIN, this.top, canvas.width / this.scale, height);
    this.top += height + 8;
  }

  address(): string {
    return this.canvas.toDataURL("image/png");
  }
}

export function savePicture(picture: Picture): void {
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(480, ...picture.parts.map((part) => part.canvas.width / scale));
  const charts = picture.parts.reduce((sum, part) => sum + part.canvas.height / scale + 8 + (part.title ? 19 : 0), 0);
  const keyLines = Math.ceil(picture.key.reduce((sum, each) => sum + 34 + each.name.length * 8, 0) / width);
  const addressLines = Math.ceil((location.href.length * 6.6) / width) + 1;
  const height = 2 * MARGIN + 23 + 20 + keyLines * LINE + 6 + charts + (addressLines + 1) * 16;
  const sheet = new Sheet(width, height, scale);
  sheet.words({ text: picture.title, size: 16, bold: true });
  sheet.words({ text: picture.note, size: 12 });
  sheet.key(picture.key);
  for (const part of picture.parts) {
    if (part.title) sheet.words({ text: part.title, size: 13, bold: true });
    sheet.image(part.canvas);
  }
  sheet.words({ text: `Sweetspot, ${new Date().toLocaleString()}`, size: 11 });
  sheet.words({ text: location.href, size: 11 });
  const link = document.createElement("a");
  link.download = `${picture.title.replace(/[^\p{L}\p{N}.-]+/gu, "-")}.png`;
  link.href = sheet.address();
  link.click();
}

/** A visible table, including the colours of its cells. */
export function tablePicture(table: HTMLTableElement): HTMLCanvasElement {
  const scale = window.devicePixelRatio || 1;
  const box = table.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  canvas.width = box.width * scale;
  canvas.height = box.height * scale;
  const pen = canvas.getContext("2d");
  if (!pen) return canvas;
  pen.scale(scale, scale);
  pen.textBaseline = "middle";
  for (const cell of table.querySelectorAll<HTMLElement>("th, td, caption")) paintCell(pen, cell, box);
  return canvas;
}

function paintCell(pen: CanvasRenderingContext2D, cell: HTMLElement, box: DOMRect): void {
  const style = getComputedStyle(cell);
  const at = cell.getBoundingClientRect();
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(at.left - box.left, at.top - box.top, at.width, at.height);
  pen.fillStyle = style.color;
  pen.font = `${style.fontWeight} ${style.fontSize} ${FONT}`;
  const right = style.textAlign === "right" || style.textAlign === "end";
  pen.textAlign = right ? "right" : "left";
  const x = right ? at.right - box.left - 6 : at.left - box.left + 6;
  pen.fillText(cell.dataset.text ?? cell.firstChild?.textContent ?? "", x, at.top - box.top + at.height / 2);
}
