/** Records what is drawn on a canvas as SVG: the part of CanvasRenderingContext2D that our charts and pictures use. */

type Matrix = readonly [number, number, number, number, number, number];

interface State {
  matrix: Matrix;
  clip: string; // id of a clip path
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  lineCap: string;
  lineJoin: string;
  lineDashOffset: number;
  globalAlpha: number;
  font: string;
  textAlign: string;
  textBaseline: string;
  dash: readonly number[];
}

const START: State = {
  matrix: [1, 0, 0, 1, 0, 0],
  clip: "",
  fillStyle: "#000000",
  strokeStyle: "#000000",
  lineWidth: 1,
  lineCap: "butt",
  lineJoin: "miter",
  lineDashOffset: 0,
  globalAlpha: 1,
  font: "10px sans-serif",
  textAlign: "start",
  textBaseline: "alphabetic",
  dash: [],
};
const ANCHORS: Readonly<Record<string, string>> = { center: "middle", right: "end", end: "end" };
const SHIFTS: Readonly<Record<string, string>> = { top: "0.8em", hanging: "0.8em", middle: "0.35em", bottom: "-0.2em" };
let clips = 0; // ids are unique in a file of several pictures

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const round = (value: number): string => String(Number(value.toFixed(2)));

/** Colour and opacity apart: not every program reads #rrggbbaa. */
export function paint(name: "fill" | "stroke", colour: string, alpha: number): string {
  const [, solid = colour, share = "ff"] = /^(#[0-9a-f]{6})([0-9a-f]{2})$/i.exec(colour) ?? [];
  const opacity = (Number.parseInt(share, 16) / 255) * alpha;
  return `${name}="${escaped(solid)}"${opacity < 1 ? ` ${name}-opacity="${round(opacity)}"` : ""}`;
}

/** A font of CSS as attributes: the policy of our pages allows no styles in elements. */
export function fontAttributes(font: string): string {
  const [, before = "", size = "10px", family = "sans-serif"] = /^(.*?)([\d.]+px)(?:\/\S+)?\s+(.+)$/.exec(font) ?? [];
  const weight = /\b(bold|[1-9]00)\b/.exec(before)?.[1];
  const said = `font-family="${escaped(family)}" font-size="${size}"`;
  return weight ? `${said} font-weight="${weight}"` : said;
}

export class SvgPen {
  private state: State = { ...START };
  private readonly saved: State[] = [];
  private readonly parts: string[] = [];
  private path: string[] = [];
  private readonly ruler = document.createElement("canvas").getContext("2d");

  constructor(readonly canvas: HTMLCanvasElement) {}

  /** Everything drawn so far. */
  content(): string {
    return this.parts.join("\n");
  }

  /** Another drawing, moved by `x` and `y`. */
  embed(content: string, x: number, y: number): void {
    this.parts.push(`<g transform="translate(${round(x)} ${round(y)})">${content}</g>`);
  }

  // ---- state

  save(): void {
    this.saved.push({ ...this.state });
  }
  restore(): void {
    this.state = this.saved.pop() ?? this.state;
  }
  translate(x: number, y: number): void {
    this.multiply([1, 0, 0, 1, x, y]);
  }
  rotate(angle: number): void {
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    this.multiply([cos, sin, -sin, cos, 0, 0]);
  }
  scale(x: number, y: number): void {
    this.multiply([x, 0, 0, y, 0, 0]);
  }
  setTransform(a: number, b: number, c: number, d: number, e: number, f: number): void {
    this.state.matrix = [a, b, c, d, e, f];
  }
  resetTransform(): void {
    this.state.matrix = START.matrix;
  }
  setLineDash(dash: readonly number[]): void {
    this.state.dash = dash;
  }
  getLineDash(): readonly number[] {
    return this.state.dash;
  }

  // ---- paths

  beginPath(): void {
    this.path = [];
  }
  closePath(): void {
    this.path.push("Z");
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${this.at(x, y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length > 0 ? "L" : "M"}${this.at(x, y)}`);
  }
  bezierCurveTo(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void {
    this.path.push(`C${this.at(x1, y1)} ${this.at(x2, y2)} ${this.at(x, y)}`);
  }
  quadraticCurveTo(x1: number, y1: number, x: number, y: number): void {
    this.path.push(`Q${this.at(x1, y1)} ${this.at(x, y)}`);
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.moveTo(x, y);
    this.lineTo(x + width, y);
    this.lineTo(x + width, y + height);
    this.lineTo(x, y + height);
    this.closePath();
  }
  arc(x: number, y: number, radius: number, start: number, end: number, backwards = false): void {
    this.ellipse(x, y, radius, radius, 0, start, end, backwards);
  }
  /** In quarters at most, so that no arc is ambiguous. */
  ellipse(x: number, y: number, rx: number, ry: number, turn: number, start: number, end: number, backwards = false) {
    const full = 2 * Math.PI;
    let span = backwards ? start - end : end - start;
    span = span >= full ? full : ((span % full) + full) % full;
    const steps = Math.max(1, Math.ceil(span / (Math.PI / 2)));
    const point = (angle: number): [number, number] => {
      const [across, down] = [rx * Math.cos(angle), ry * Math.sin(angle)];
      return [x + across * Math.cos(turn) - down * Math.sin(turn), y + across * Math.sin(turn) + down * Math.cos(turn)];
    };
    this.lineTo(...point(start));
    const size = this.stretch();
    for (let step = 1; step <= steps; step += 1) {
      const angle = start + ((backwards ? -1 : 1) * span * step) / steps;
      const arc = `${round(rx * size)} ${round(ry * size)} ${round((turn * 180) / Math.PI)} 0 ${backwards ? 0 : 1}`;
      this.path.push(`A${arc} ${this.at(...point(angle))}`);
    }
  }
  clip(): void {
    clips += 1;
    const id = `clip${clips}`;
    this.parts.push(`<clipPath id="${id}"${this.clipping()}><path d="${this.path.join("")}"/></clipPath>`);
    this.state.clip = id;
  }

  // ---- drawing

  fill(rule?: CanvasFillRule): void {
    const holes = rule === "evenodd" ? ' fill-rule="evenodd"' : "";
    this.shape(`${paint("fill", this.state.fillStyle, this.state.globalAlpha)}${holes}`);
  }
  stroke(): void {
    const { strokeStyle, lineWidth, lineCap, lineJoin, dash, lineDashOffset, globalAlpha } = this.state;
    const size = this.stretch();
    const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}" stroke-dashoffset="${lineDashOffset}"` : "";
    const line = `stroke-width="${round(lineWidth * size)}" stroke-linecap="${lineCap}" stroke-linejoin="${lineJoin}"`;
    this.shape(`fill="none" ${paint("stroke", strokeStyle, globalAlpha)} ${line}${dashes}`);
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    const kept = this.path;
    this.path = [];
    this.rect(x, y, width, height);
    this.fill();
    this.path = kept;
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    const kept = this.path;
    this.path = [];
    this.rect(x, y, width, height);
    this.stroke();
    this.path = kept;
  }
  /** Chart.js clears the whole canvas before each drawing. */
  clearRect(): void {
    this.parts.length = 0;
  }
  fillText(text: string, x: number, y: number): void {
    this.text(text, x, y, paint("fill", this.state.fillStyle, this.state.globalAlpha));
  }
  strokeText(text: string, x: number, y: number): void {
    const { strokeStyle, globalAlpha, lineWidth, lineJoin } = this.state;
    const stroke = paint("stroke", strokeStyle, globalAlpha);
    this.text(text, x, y, `fill="none" ${stroke} stroke-width="${round(lineWidth)}" stroke-linejoin="${lineJoin}"`);
  }
  private text(text: string, x: number, y: number, painted: string): void {
    const { matrix, font, textAlign, textBaseline } = this.state;
    const anchor = ANCHORS[textAlign] ?? "start";
    const place = `x="${round(x)}" y="${round(y)}" dy="${SHIFTS[textBaseline] ?? "0"}" text-anchor="${anchor}"`;
    const style = `${fontAttributes(font)} ${painted}`;
    const moved = `transform="matrix(${matrix.map(round).join(" ")})"`;
    // the clip path must not move with the text
    this.parts.push(`<g${this.clipping()}><text ${place} ${moved} ${style}>${escaped(text)}</text></g>`);
  }
  drawImage(): void {
    // other drawings are embedded
  }
  measureText(text: string): TextMetrics | { width: number } {
    if (!this.ruler) return { width: text.length * 6 };
    this.ruler.font = this.state.font;
    return this.ruler.measureText(text);
  }

  private shape(style: string): void {
    const line = this.path.join("");
    // as a canvas does: nothing is drawn at a place that is not a number
    if (line && !line.includes("NaN")) this.parts.push(`<path d="${line}" ${style}${this.clipping()}/>`);
  }
  private clipping(): string {
    return this.state.clip ? ` clip-path="url(#${this.state.clip})"` : "";
  }
  private at(x: number, y: number): string {
    const [a, b, c, d, e, f] = this.state.matrix;
    return `${round(a * x + c * y + e)} ${round(b * x + d * y + f)}`;
  }
  /** By how much lengths grow. */
  private stretch(): number {
    const [a, b, c, d] = this.state.matrix;
    return Math.sqrt(Math.abs(a * d - b * c));
  }
  private multiply([a, b, c, d, e, f]: Matrix): void {
    const [ma, mb, mc, md, me, mf] = this.state.matrix;
    this.state.matrix = [
      ma * a + mc * b,
      mb * a + md * b,
      ma * c + mc * d,
      mb * c + md * d,
      ma * e + mc * f + me,
      mb * e + md * f + mf,
    ];
  }
}

/** Pens have the properties of a canvas context, which are assigned by name. */
for (const name of Object.keys(START) as (keyof State)[]) {
  if (name === "matrix" || name === "clip" || name === "dash") continue;
  Object.defineProperty(SvgPen.prototype, name, {
    get(this: { state: State }): unknown {
      return this.state[name];
    },
    set(this: { state: State }, value: unknown): void {
      Object.assign(this.state, { [name]: value });
    },
  });
}

/** The pen as Chart.js takes it. */
export function asContext(pen: SvgPen): CanvasRenderingContext2D {
  return pen as unknown as CanvasRenderingContext2D;
}
