/** The samples of a run as they arrive: unique, ordered by time, in lines with a gap where nothing was measured. */

import type { LiveSample, LiveSensors } from "#payloads/live";

export interface Point {
  readonly x: number;
  readonly y: number | null;
}

export type SampleField =
  | "iops"
  | "bytes_per_s"
  | "p50_ns"
  | "p99_ns"
  | "p999_ns"
  | "queue_depth"
  | "utilisation_percent";

const MANY_POINTS = 120;
const DOT_PX = 1.5;
const MAX_GAP_S = 1.5; // between the end of a sample and the beginning of the next
const LONG_MS = 1500; // a longer sample is drawn from its beginning to its end

function identity(sample: LiveSample): string {
  return `${sample.host}/${sample.trial}/${sample.attempt}/${sample.stream}/${sample.offset_ms}/${sample.direction}`;
}

/** A stream by its name, or by its number if all streams of the trial have the same workload. */
export type Stream = number | string;

function streamOf(sample: LiveSample): Stream {
  return sample.stream_name || sample.stream;
}

function attemptOf(of: { host: string; trial: number; attempt: number }): string {
  return `${of.host}/${of.trial}/${of.attempt}`;
}

function beginOf(sample: LiveSample): number {
  return sample.at_s - sample.length_ms / 1000;
}

/** Inserts it in order of time; nearly always at the end. */
function insertInto(lines: Map<string, LiveSample[]>, name: string, sample: LiveSample): void {
  const line = lines.get(name) ?? [];
  if (line.length === 0) lines.set(name, line);
  let at = line.length;
  while (at > 0 && (line[at - 1]?.at_s ?? 0) > sample.at_s) at -= 1;
  line.splice(at, 0, sample);
}

export class SampleStore {
  private readonly known = new Set<string>();
  private readonly lines = new Map<string, LiveSample[]>();
  /** Seconds with telemetry values, by host, and the sensors that have had a value. */
  private readonly read = new Map<string, LiveSample[]>();
  private readonly heard = new Set<string>();
  /** For each attempt: the index of a sensor's value in a sample, by panel and name. */
  private readonly places = new Map<string, ReadonlyMap<string, number>>();

  /** Adds new samples and ignores known ones. Returns the number of new ones. */
  add(samples: readonly LiveSample[]): number {
    let added = 0;
    for (const sample of samples) {
      const key = identity(sample);
      if (this.known.has(key)) continue;
      this.known.add(key);
      this.insert(sample);
      added += 1;
    }
    return added;
  }

  /** Adds the names of the sensors of attempts. */
  addSensors(attempts: readonly LiveSensors[]): void {
    for (const each of attempts) {
      const places = each.sensors.map(({ panel, name }, place): [string, number] => [`${panel}\t${name}`, place]);
      this.places.set(attemptOf(each), new Map(places));
    }
  }

  /** Names of a panel's sensors that have had a value on a host, in the order of their first appearance. */
  sensors(host: string, panel: string): string[] {
    const names = new Set<string>();
    for (const [attempt, places] of this.places) {
      if (!attempt.startsWith(`${host}/`)) continue;
      for (const key of places.keys()) if (key.startsWith(`${panel}\t`)) names.add(key.slice(panel.length + 1));
    }
    return [...names].filter((name) => this.heard.has(`${host}\t${panel}\t${name}`));
  }

  /** Names and values of a panel's sensors in one sample. */
  told(sample: LiveSample, panel: string): [string, number][] {
    const places = this.places.get(attemptOf(sample)) ?? new Map<string, number>();
    return [...places].flatMap(([key, place]): [string, number][] => {
      const value = sample.telemetry[place] ?? null;
      return key.startsWith(`${panel}\t`) && value !== null ? [[key.slice(panel.length + 1), value]] : [];
    });
  }

  /** The values of one sensor of a host, with their times. */
  readings(host: string, panel: string, name: string): { sample: LiveSample; value: number | null }[] {
    return (this.read.get(host) ?? []).map((sample) => {
      const place = this.places.get(attemptOf(sample))?.get(`${panel}\t${name}`) ?? -1;
      return { sample, value: sample.telemetry[place] ?? null };
    });
  }

  private insert(sample: LiveSample): void {
    const name = `${sample.host}\t${sample.direction}\t${streamOf(sample)}`;
    insertInto(this.lines, name, sample);
    if (sample.telemetry.length === 0) return;
    insertInto(this.read, sample.host, sample);
    for (const [key, place] of this.places.get(attemptOf(sample)) ?? []) {
      if ((sample.telemetry[place] ?? null) !== null) this.heard.add(`${sample.host}\t${key}`);
    }
  }

  get hosts(): string[] {
    return [...new Set([...this.lines.keys()].map((name) => name.split("\t")[0] ?? ""))].sort();
  }

  /** Directions of a host's samples, read first. */
  directions(host: string): string[] {
    const seen = new Set([...this.lines.keys()].filter((name) => name.startsWith(`${host}\t`)));
    return ["read", "write", "trim", "transaction", "resync", "none"].filter((direction) =>
      [...seen].some((name) => name.startsWith(`${host}\t${direction}\t`)),
    );
  }

  /** Streams of a host's samples: 0, more if several targets were used at once, and names of streams. */
  streams(host: string): Stream[] {
    const lines = [...this.lines].filter(([name]) => name.startsWith(`${host}\t`)).map(([, line]) => line);
    const seen = new Set(lines.flatMap((line) => (line[0] ? [streamOf(line[0])] : [])));
    return [...seen].sort((a, b) => Number(typeof a === "string") - Number(typeof b === "string") || (a > b ? 1 : -1));
  }

  /** The lines of one stream. The streams of a trial run at the same time. */
  line(host: string, direction: string, stream: Stream = 0): readonly LiveSample[] {
    return this.lines.get(`${host}\t${direction}\t${stream}`) ?? [];
  }

  /** The device's figures of a stream, once per second: both directions of a second have the same ones. */
  deviceLine(host: string, stream: Stream = 0): readonly LiveSample[] {
    const seconds = new Map<string, LiveSample>();
    for (const direction of this.directions(host)) {
      for (const sample of this.line(host, direction, stream)) {
        seconds.set(`${sample.trial}/${sample.attempt}/${sample.offset_ms}`, sample);
      }
    }
    return [...seconds.values()].sort((a, b) => a.at_s - b.at_s);
  }

  /** All lines of a host. */
  everything(host: string): LiveSample[] {
    return [...this.lines].flatMap(([name, line]) => (name.startsWith(`${host}\t`) ? line : []));
  }

  /** Trial, attempt and offset in ms of the newest sample, as 3/1/17004; "" without samples. */
  newest(): string {
    const last = [...this.lines.values()].map((line) => line[line.length - 1]).filter((each) => each !== undefined);
    const newest = last.sort((a, b) => b.at_s - a.at_s)[0];
    return newest ? `${newest.trial}/${newest.attempt}/${newest.offset_ms}` : "";
  }

  /** The first and the last time, or null without samples. */
  span(): { from: number; to: number } | null {
    const all = [...this.lines.values()].filter((line) => line.length > 0);
    if (all.length === 0) return null;
    const firsts = all.map((line) => line[0]?.at_s ?? 0);
    const lasts = all.map((line) => line[line.length - 1]?.at_s ?? 0);
    return { from: Math.min(...firsts), to: Math.max(...lasts) };
  }

  /** For each line, the sample nearest to a time, at most 1.5 s away. */
  at(time: number): LiveSample[] {
    const found: LiveSample[] = [];
    for (const line of this.lines.values()) {
      const nearest = closest(line, time);
      if (nearest && Math.abs(nearest.at_s - time) <= 1.5) found.push(nearest);
    }
    return found;
  }

  /** Begin and end of the samples of each attempt, in order of time. */
  attempts(): { from: number; to: number; trial: number }[] {
    const found = new Map<string, { from: number; to: number; trial: number }>();
    for (const line of this.lines.values()) {
      for (const sample of line) {
        const begin = Math.max(0, beginOf(sample));
        const known = found.get(attemptOf(sample)) ?? { from: begin, to: begin, trial: sample.trial };
        const from = Math.min(known.from, begin);
        found.set(attemptOf(sample), { ...known, from, to: Math.max(known.to, sample.at_s) });
      }
    }
    return [...found.values()].sort((a, b) => a.from - b.from);
  }
}

function closest(line: readonly LiveSample[], time: number): LiveSample | undefined {
  let low = 0;
  let high = line.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((line[middle]?.at_s ?? 0) < time) low = middle + 1;
    else high = middle;
  }
  const after = line[low];
  const before = line[low - 1];
  if (!after || !before) return after ?? before;
  return after.at_s - time < time - before.at_s ? after : before;
}

/** Points of one field from a time on, with a gap between trials and where samples are missing. */
export function points(line: readonly LiveSample[], field: SampleField, from: number): Point[] {
  const made: Point[] = [];
  let last: LiveSample | undefined;
  for (const sample of line) {
    if (sample.at_s < from) continue;
    if (last && breaks(last, sample)) made.push({ x: last.at_s + 0.01, y: null });
    if (sample.length_ms > LONG_MS) made.push({ x: Math.max(from, beginOf(sample) + 0.01), y: sample[field] });
    made.push({ x: sample.at_s, y: sample[field] });
    last = sample;
  }
  return made;
}

/** The same for one telemetry sensor. A sensor with values only now and then is still drawn as one line. */
export function telemetryPoints(readings: ReturnType<SampleStore["readings"]>, from: number): Point[] {
  const made: Point[] = [];
  let last: LiveSample | undefined;
  for (const { sample, value } of readings) {
    if (sample.at_s < from) continue;
    if (last && breaks(last, sample)) made.push({ x: last.at_s + 0.01, y: null });
    if (value !== null) made.push({ x: sample.at_s, y: value });
    last = sample;
  }
  return made;
}

/** Radius of each point's dot, px. If there are many points, only those that no line joins to a neighbour have a dot. */
export function dotSizes(made: readonly Point[]): number[] {
  const few = made.length < MANY_POINTS;
  const drawn = (place: number): boolean => typeof made[place]?.y === "number";
  return made.map((_, place) => (few || !(drawn(place - 1) || drawn(place + 1)) ? DOT_PX : 0));
}

function breaks(before: LiveSample, after: LiveSample): boolean {
  return before.trial !== after.trial || before.attempt !== after.attempt || beginOf(after) - before.at_s > MAX_GAP_S;
}

export interface Second {
  readonly iops: number | null;
  readonly transactionsPerS: number | null;
  readonly bytesPerS: number | null;
  readonly p99Ns: number | null;
}

function plus(one: number | null, other: number | null): number | null {
  return one === null ? other : one + (other ?? 0);
}

function trialOf(sample: LiveSample): string {
  return `${sample.host}/${sample.trial}/${sample.attempt}`;
}

/** The value of a second is that of the sample that covers its middle. Rates of directions and streams are added; of
 * percentiles, the largest is shown. The progress of a resync is not added to the I/O beside it. */
export function perSecond(samples: readonly LiveSample[]): Second[] {
  const seconds = new Map<string, Second>();
  const withIo = new Set(samples.filter((one) => one.direction !== "resync").map(trialOf));
  for (const sample of samples) {
    const begin = Math.round((sample.offset_ms - sample.length_ms) / 1000);
    const counts = sample.direction !== "resync" || !withIo.has(trialOf(sample));
    const ofDatabase = sample.direction === "transaction";
    for (let second = begin; second < Math.round(sample.offset_ms / 1000); second += 1) {
      const key = `${trialOf(sample)}/${second}`;
      const before = seconds.get(key) ?? { iops: null, transactionsPerS: null, bytesPerS: null, p99Ns: null };
      seconds.set(key, {
        iops: plus(before.iops, ofDatabase ? null : sample.iops),
        transactionsPerS: plus(before.transactionsPerS, ofDatabase ? sample.iops : null),
        bytesPerS: plus(before.bytesPerS, counts ? sample.bytes_per_s : null),
        p99Ns: sample.p99_ns === null ? before.p99Ns : Math.max(before.p99Ns ?? 0, sample.p99_ns),
      });
    }
  }
  return [...seconds.values()];
}
