/** Ticks of log2 axes (block sizes, depths, threads) and of time axes. */

/** Powers of two that cover [min, max], thinned to at most `limit`. */
export function powersOfTwo(min: number, max: number, limit = 16): number[] {
  if (!(min > 0) || max < min) return [];
  const first = Math.floor(Math.log2(min) + 1e-9);
  const last = Math.ceil(Math.log2(max) - 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / limit));
  const ticks: number[] = [];
  for (let power = first; power <= last; power += step) ticks.push(2 ** power);
  return ticks;
}

/** A log2 axis fits levels that are all positive and span a factor of 4 or more. */
export function wantsLog2(levels: readonly number[]): boolean {
  if (levels.length < 2 || levels.some((level) => level <= 0)) return false;
  return Math.max(...levels) / Math.min(...levels) >= 4;
}

/** Levels with a zero whose others need a log2 axis (read-ahead 0, 128, 4096): evenly spaced, as names are. */
export function wantsEven(levels: readonly number[]): boolean {
  return levels.some((level) => level === 0) && wantsLog2([...levels].filter((level) => level !== 0));
}

/** Bounds of a log2 axis with a quarter of a power of room at both ends. */
export function log2Bounds(levels: readonly number[]): { min: number; max: number } {
  const room = 2 ** 0.25;
  return { min: Math.min(...levels) / room, max: Math.max(...levels) * room };
}

/** A formatted value as a tick: 60.0k is 60k there. */
export function tickText(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** Round times between min and max (s), about `wanted` of them. */
export function timeTicks(min: number, max: number, wanted = 8): number[] {
  const span = max - min;
  if (!(span > 0)) return [];
  const step = STEPS_S.find((candidate) => span / candidate <= wanted) ?? 86400 * Math.ceil(span / wanted / 86400);
  const ticks: number[] = [];
  for (let at = Math.ceil(min / step) * step; at <= max; at += step) ticks.push(at);
  return ticks;
}
