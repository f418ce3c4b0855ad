/** Buttons that save a picture: a drawing of the page, or one that the server makes. `data-save-as` is png or svg. */

import { showProblem } from "../lib/dom";

const SCALE = 2; // of PNG
const SPACE = 8; // px between the pieces of a drawing

/** The pieces of a drawing one below the other, as one SVG. */
export function stacked(drawing: Element): string {
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  let [width, top] = [0, 0];
  for (const piece of drawing.querySelectorAll(":scope > * > svg")) {
    const copy = piece.cloneNode(true) as SVGSVGElement;
    copy.setAttribute("y", String(top));
    sheet.append(copy);
    width = Math.max(width, Number(piece.getAttribute("width")));
    top += Math.ceil(Number(piece.getAttribute("height"))) + SPACE;
  }
  sheet.setAttribute("width", String(width));
  sheet.setAttribute("height", String(top));
  sheet.setAttribute("viewBox", `0 0 ${width} ${top}`);
  return new XMLSerializer().serializeToString(sheet);
}

async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`; // the policy allows no blob
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * image.naturalWidth;
  canvas.height = SCALE * image.naturalHeight;
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("This browser cannot draw pictures.");
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((png) =>
      png ? resolve(png) : reject(new Error("The picture is too large for a PNG; save the SVG.")),
    ),
  );
}

async function sourceOf({ address, drawing }: DOMStringMap, seconds: string): Promise<string> {
  if (!address) return stacked(document.getElementById(drawing ?? "") ?? document.createElement("div"));
  const answer = await fetch(`${address}${address.includes("?") ? "&" : "?"}${seconds}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.text();
}

/** Offers a file. Characters that file systems refuse become hyphens. */
export function download(title: string, ending: string, content: Blob): void {
  const link = document.createElement("a");
  link.download = `${title.replace(/[^\p{L}\p{N}.-]+/gu, "-")}.${ending}`;
  link.href = URL.createObjectURL(content);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** `seconds`: the part of the time axis that the page shows, as parameters of an address. */
export function initSavePicture(seconds: () => string = () => ""): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-save-as]")) {
    const save = async (): Promise<void> => {
      const svg = await sourceOf(button.dataset, seconds());
      const { title = "", saveAs = "svg" } = button.dataset;
      download(title, saveAs, saveAs === "png" ? await pngOf(svg) : new Blob([svg], { type: "image/svg+xml" }));
    };
    button.addEventListener("click", () => save().catch((error: Error) => showProblem(error.message)));
  }
}
