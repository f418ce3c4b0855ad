/** Formats numbers for people. `webapp/core/formatting.py` does the same; tests/vectors/format.json tests both. */

import type { ShownAs } from "#payloads/charts";

export const NOTHING = "–";

/** Three significant digits, never an exponent, thousands grouped: 0.0123, 45.6, 1,230, 12,300. */
export function significant(value: number): string {
  if (value === 0) return "0";
  const rounded = Number(Math.abs(value).toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(rounded)));
  const [whole = "0", fraction] = rounded.toFixed(Math.min(decimals, 20)).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${value < 0 ? "−" : ""}${grouped}${fraction === undefined ? "" : `.${fraction}`}`;
}

interface Step {
  readonly factor: number;
  readonly unit: string;
}

/** The largest unit in which the number is at least 1 after rounding; else the smallest unit. */
function scaled(value: number, steps: readonly Step[]): [string, string] {
  const magnitude = Math.abs(value);
  const fits = steps.findLast((step) => Number((magnitude / step.factor).toPrecision(3)) >= 1) ?? steps[0];
  if (fits === undefined) return [significant(value), ""];
  return [significant(value / fits.factor), fits.unit];
}

function withUnit(value: number | null, steps: readonly Step[]): string {
  if (value === null) return NOTHING;
  const [text, unit] = scaled(value, steps);
  return unit === "" ? text : `${text} ${unit}`;
}

const COUNTS: readonly Step[] = [
  { factor: 1, unit: "" },
  { factor: 1e3, unit: "k" },
  { factor: 1e6, unit: "M" },
  { factor: 1e9, unit: "G" },
];
const BYTES: readonly Step[] = [
  { factor: 1, unit: "B" },
  { factor: 1e3, unit: "kB" },
  { factor: 1e6, unit: "MB" },
  { factor: 1e9, unit: "GB" },
  { factor: 1e12, unit: "TB" },
  { factor: 1e15, unit: "PB" },
];
const BINARY_BYTES: readonly Step[] = [
  { factor: 1, unit: "B" },
  { factor: 2 ** 10, unit: "KiB" },
  { factor: 2 ** 20, unit: "MiB" },
  { factor: 2 ** 30, unit: "GiB" },
  { factor: 2 ** 40, unit: "TiB" },
];
const NANOSECONDS: readonly Step[] = [
  { factor: 1, unit: "ns" },
  { factor: 1e3, unit: "µs" },
  { factor: 1e6, unit: "ms" },
  { factor: 1e9, unit: "s" },
];

/** IOPS as fio writes them: 812, 45.6k, 1.23M. */
export const iops = (value: number | null): string => withUnit(value, COUNTS).replace(" ", "");

/** Rates and drive capacities, decimal: 45.6 kB, 1.92 TB. */
export const bytes = (value: number | null): string => withUnit(value, BYTES);
export const bytesPerSecond = (value: number | null): string => (value === null ? NOTHING : `${bytes(value)}/s`);

/** fio's last bucket, which holds everything above 17 s (worker/contract/packing.py). */
const LAST_BUCKET_NS = 17_112_760_320;
export const latency = (valueNs: number | null): string =>
  valueNs !== null && Math.round(valueNs) === LAST_BUCKET_NS ? "> 17 s" : withUnit(valueNs, NANOSECONDS);

/** Block and memory sizes, binary: 512 B, 4 KiB, 1.5 MiB. */
export const binaryBytes = (value: number | null): string =>
  withUnit(value, BINARY_BYTES)
    .replace(/(\.\d*?)0+ /, "$1 ")
    .replace(". ", " ");

/** 3 s, 2 min 05 s, 1 h 03 min, 2 d 4 h; whole seconds. */
export function duration(valueS: number | null): string {
  if (valueS === null) return NOTHING;
  const seconds = Math.max(0, Math.floor(valueS));
  const two = (value: number): string => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

/** Ratio to a baseline: ×2.60. Two decimals below 10. */
export function ratio(value: number | null): string {
  if (value === null) return NOTHING;
  const twoDecimals = value === 0 || (value >= 0.005 && value < 9.995);
  return `×${twoDecimals ? value.toFixed(2) : significant(value)}`;
}

export const percent = (value: number | null): string => (value === null ? NOTHING : `${significant(value)} %`);

/** The formatters of metrics, by name. */
export const SHOW: Readonly<Record<ShownAs, (value: number) => string>> = {
  iops,
  bytes_per_s: bytesPerSecond,
  latency,
  seconds: (value) => `${significant(value)} s`,
  number: significant,
  percent: (value) => `${significant(value)} %`,
  entered: significant,
  watts: (value) => `${significant(value)} W`,
  celsius: (value) => `${significant(value)} °C`,
};

/** m:ss on time axes; h:mm:ss from an hour on. */
export function clock(valueS: number): string {
  const seconds = Math.round(Math.abs(valueS));
  const two = (value: number): string => String(value).padStart(2, "0");
  const sign = valueS < 0 && seconds > 0 ? "−" : "";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${sign}${minutes}:${two(seconds % 60)}`;
  return `${sign}${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** "1 file", "2,300 files". The plural of the noun ends with s. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
