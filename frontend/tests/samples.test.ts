import { expect, test } from "vitest";
import type { LiveSample } from "#payloads/live";
import { sparkline } from "../src/features/nowCards";
import { rateName, rateOf } from "../src/features/secondsText";
import { dotSizes, perSecond, points, SampleStore, telemetryPoints } from "../src/lib/samples";

function sample(second: number, changes: Partial<LiveSample> = {}): LiveSample {
  return {
    host: "storage1",
    trial: 0,
    attempt: 1,
    stream: 0,
    stream_name: "",
    offset_ms: 1000 * (second + 1),
    length_ms: 1000,
    estimated: false,
    at_s: second + 1,
    direction: "read",
    iops: 1000 + second,
    bytes_per_s: 4_096_000,
    p50_ns: 100,
    p99_ns: 200,
    p999_ns: null,
    queue_depth: 1,
    utilisation_percent: 50,
    telemetry: [],
    ...changes,
  };
}

test("a second that comes twice is one second", () => {
  const store = new SampleStore();
  expect(store.add([sample(0), sample(1)])).toBe(2);
  expect(store.add([sample(1), sample(2)])).toBe(1);
  expect(store.line("storage1", "read").map((each) => each.offset_ms)).toEqual([1000, 2000, 3000]);
});

test("seconds that come late are put in their place", () => {
  const store = new SampleStore();
  store.add([sample(2), sample(0), sample(1)]);
  expect(store.line("storage1", "read").map((each) => each.offset_ms)).toEqual([1000, 2000, 3000]);
});

test("lines break between trials and where seconds are missing, and nowhere else", () => {
  const line = [sample(0), sample(1), sample(5), sample(0, { trial: 1, at_s: 7 })];
  expect(points(line, "iops", 0).map((point) => point.y)).toEqual([1000, 1001, null, 1005, null, 1000]);
});

test("of many points, those without a line to another one have a dot", () => {
  const lone = Array.from({ length: 100 }, (_, second) => [
    { x: second, y: 1 },
    { x: second + 0.01, y: null },
  ]).flat();
  expect(dotSizes(lone).filter((_, place) => place % 2 === 0)).toEqual(Array(100).fill(1.5));
  const joined = Array.from({ length: 200 }, (_, second) => ({ x: second, y: 1 }));
  expect(dotSizes(joined)).toEqual(Array(200).fill(0));
  expect(dotSizes(joined.slice(0, 3))).toEqual([1.5, 1.5, 1.5]);
});

test("points begin where the window begins", () => {
  expect(points([sample(0), sample(1), sample(2)], "iops", 2).map((point) => point.x)).toEqual([2, 3]);
});

test("the nearest second of every line is read at a time, and none far away", () => {
  const store = new SampleStore();
  store.add([sample(0), sample(1), sample(1, { direction: "write" })]);
  expect(store.at(2.2).map((each) => [each.offset_ms, each.direction])).toEqual([
    [2000, "read"],
    [2000, "write"],
  ]);
  expect(store.at(60)).toEqual([]);
});

test("the device's line holds each second once, whatever its directions", () => {
  const store = new SampleStore();
  store.add([sample(0), sample(0, { direction: "write" }), sample(0, { direction: "write", trial: 1, at_s: 9 })]);
  expect(store.deviceLine("storage1").map((each) => each.at_s)).toEqual([1, 9]);
});

test("attempts are in order of time, each once, from their first to their last sample", () => {
  const store = new SampleStore();
  store.add([sample(0, { trial: 1, at_s: 10 }), sample(0), sample(1), sample(0, { direction: "write" })]);
  expect(store.attempts()).toEqual([
    { from: 0, to: 2, trial: 0 },
    { from: 9, to: 10, trial: 1 },
  ]);
});

test("rates of both directions add up, of the percentiles the worst counts", () => {
  const made = perSecond([sample(0), sample(0, { direction: "write", iops: 500, p99_ns: 900 })]);
  expect(made).toEqual([{ iops: 1500, transactionsPerS: null, bytesPerS: 8_192_000, p99Ns: 900 }]);
});

test("the progress of a resync is not added to the bandwidth of the stream beside it", () => {
  const resync = { direction: "resync", iops: null, bytes_per_s: 1_000_000, p99_ns: null } as const;
  expect(perSecond([sample(0, resync), sample(0)]).map((each) => each.bytesPerS)).toEqual([4_096_000]);
  expect(perSecond([sample(0, resync), sample(0, { trial: 1 })]).map((each) => each.bytesPerS)).toEqual([
    1_000_000, 4_096_000,
  ]);
});

test("a second of a database has transactions, of a database beside fio both", () => {
  const database = sample(0, { direction: "transaction", iops: 450, bytes_per_s: null });
  expect(rateOf(perSecond([database])[0])).toEqual({ text: "450", name: "Transactions/s" });
  expect(rateOf(perSecond([sample(0), database])[0])).toEqual({
    text: "1.00k and 450",
    name: "IOPS and transactions/s",
  });
  expect(rateOf(undefined)).toEqual({ text: "–", name: "IOPS" });
});

test("a sparkline ends at the right and keeps in its box", () => {
  expect(sparkline([0, 10]).split(" ").at(-1)).toBe("120.0,2.0");
});

const SENSORS = [
  { panel: "interrupts", name: "all" },
  { panel: "temperature", name: "sda" },
  { panel: "power", name: "server (IPMI)" },
];

test("what a sensor tells now and then is one line; one that never told anything is not offered", () => {
  const store = new SampleStore();
  store.addSensors([{ host: "storage1", trial: 0, attempt: 1, sensors: SENSORS }]);
  store.add([
    sample(1, { telemetry: [20, null, null] }),
    sample(0, { telemetry: [10, 31, null] }),
    sample(0, { direction: "write" }),
    sample(2, { telemetry: [30, 33, null] }),
  ]);
  expect(store.sensors("storage1", "temperature")).toEqual(["sda"]);
  expect(store.sensors("storage1", "power")).toEqual([]);
  expect(telemetryPoints(store.readings("storage1", "temperature", "sda"), 0)).toEqual([
    { x: 1, y: 31 },
    { x: 3, y: 33 },
  ]);
  expect(telemetryPoints(store.readings("storage1", "interrupts", "all"), 0).map((each) => each.y)).toEqual([
    10, 20, 30,
  ]);
});

test("a sensor is found by its name, though another trial has it at another place", () => {
  const store = new SampleStore();
  store.addSensors([
    { host: "storage1", trial: 0, attempt: 1, sensors: SENSORS },
    { host: "storage1", trial: 1, attempt: 1, sensors: [...SENSORS].reverse() },
  ]);
  store.add([sample(0, { telemetry: [10, 31, 200] }), sample(0, { trial: 1, at_s: 2, telemetry: [210, 32, 20] })]);
  const line = telemetryPoints(store.readings("storage1", "interrupts", "all"), 0);
  expect(line.map((each) => each.y)).toEqual([10, null, 20]);
  expect(store.told(sample(0, { trial: 1, telemetry: [210, 32, 20] }), "power")).toEqual([["server (IPMI)", 210]]);
});

test("targets at once have a line each, and a device's line too", () => {
  const store = new SampleStore();
  store.add([sample(0), sample(0, { stream: 1, at_s: 1.2 }), sample(1), sample(1, { stream: 1, at_s: 2.2, iops: 7 })]);
  expect(store.streams("storage1")).toEqual([0, 1]);
  expect(store.directions("storage1")).toEqual(["read"]);
  expect(points(store.line("storage1", "read", 1), "iops", 0).map((point) => point.y)).toEqual([1000, 7]);
  expect(store.line("storage1", "read").map((each) => each.at_s)).toEqual([1, 2]);
  expect(store.deviceLine("storage1", 1).map((each) => each.at_s)).toEqual([1.2, 2.2]);
  expect(store.at(1.1).map((each) => each.stream)).toEqual([0, 1]);
  expect(store.everything("storage1").length).toBe(4);
});

test("rates of streams add up like those of directions", () => {
  expect(perSecond([sample(0), sample(0, { stream: 1 })]).map((each) => each.iops)).toEqual([2000]);
});

test("streams with names have lines by name, whatever their number", () => {
  const store = new SampleStore();
  store.add([sample(0, { stream_name: "writer" }), sample(1, { stream: 1, stream_name: "writer" })]);
  expect(store.streams("storage1")).toEqual(["writer"]);
  expect(store.line("storage1", "read", "writer")).toHaveLength(2);
});

test("the rates of a database's transactions are not called IOPS", () => {
  expect(rateName(["read", "write"])).toBe("IOPS");
  expect(rateName(["transaction"])).toBe("Transactions/s");
  expect(rateName(["read", "transaction"])).toBe("IOPS and transactions/s");
});
