import { describe, expect, test } from "vitest";
import {
  dateText,
  dateTexts,
  dateTicks,
  exactText,
  levelPoints,
  timeRange,
  valueRange,
} from "../src/features/trendChart";
import { iops } from "../src/lib/format";

const point = (at_ms: number, value: number, low: number | null = null, high: number | null = null) => ({
  run: 1,
  at_ms,
  value,
  low,
  high,
  verdict: "",
});

describe("the trend chart", () => {
  test("has a date on ticks a day apart, and the time on closer ones", () => {
    const at = new Date(2026, 10, 3, 7, 5).getTime();
    expect(dateText(at, 86_400)).toBe("2026-11-03");
    expect(dateText(at, 3600)).toBe("2026-11-03 07:05");
  });

  test("states a day once", () => {
    const hours = [18, 22, 26, 30].map((hour) => new Date(2026, 10, 3, hour).getTime());
    expect(dateTexts(hours)).toEqual(["2026-11-03 18:00", "22:00", "2026-11-04 02:00", "06:00"]);
    const days = [3, 4].map((day) => new Date(2026, 10, day).getTime());
    expect(dateTexts(days)).toEqual(["2026-11-03", "2026-11-04"]);
  });

  test("has ticks at local midnights", () => {
    const from = new Date(2026, 10, 3, 7).getTime();
    const ticks = dateTicks(from, from + 4 * 86_400_000, 5);
    expect(ticks.map((tick) => new Date(tick).getHours())).toEqual([0, 0, 0, 0]);
  });

  test("has ticks at local midnights on both sides of a change of clocks", () => {
    const zone = process.env.TZ ?? "UTC";
    process.env.TZ = "Europe/Berlin"; // to summer time on 29 March 2026
    const from = new Date(2026, 2, 28, 12).getTime();
    const ticks = dateTicks(from, new Date(2026, 3, 1, 12).getTime(), 5);
    expect(dateTexts(ticks)).toEqual(["2026-03-29", "2026-03-30", "2026-03-31", "2026-04-01"]);
    expect(ticks.map((tick) => new Date(tick).getHours())).toEqual([0, 0, 0, 0]);
    process.env.TZ = zone;
  });

  test("shows the day around a single run", () => {
    const at = new Date(2026, 10, 3, 12).getTime();
    const { min, max } = timeRange({ points: [point(at, 10)] });
    expect([dateText(min, 3600), dateText(max, 3600)]).toEqual(["2026-11-03 00:00", "2026-11-04 00:00"]);
    expect(timeRange({ points: [point(500, 10), point(900, 10)] })).toEqual({ min: 492, max: 908 });
  });

  test("draws each level between its steps", () => {
    const data = { points: [point(0, 10), point(10, 5)], steps: [{ at_ms: 5, text: "−50 %" }], levels: [10, 5] };
    expect(levelPoints(data)).toEqual([
      { x: 0, y: 10 },
      { x: 5, y: 10 },
      { x: 5, y: null },
      { x: 5, y: 5 },
      { x: 10, y: 5 },
      { x: 10, y: null },
    ]);
  });

  test("shows all intervals and the baseline run", () => {
    const range = valueRange({ points: [point(0, 100, 90, 110), point(1, 100)], baseline: 120 });
    expect(range.min).toBeLessThan(90);
    expect(range.max).toBeGreaterThan(120);
    expect(valueRange({ points: [point(0, 100)], baseline: null })).toEqual({ min: 95, max: 105 });
    expect(valueRange({ points: [point(0, 100), point(1, 100.1)], baseline: null }).min).toBeLessThan(99.1);
  });

  test("has no two ticks with the same text in a narrow range", () => {
    const ticks = [57_800, 57_850, 57_900, 57_950, 58_000].map((value) => exactText(value, iops));
    expect(ticks).toEqual(["57.8k", null, "57.9k", null, "58k"]);
  });
});
