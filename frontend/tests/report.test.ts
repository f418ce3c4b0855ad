import { expect, test } from "vitest";
import { isoTime } from "../src/features/report";

test("dates are written in ISO order and UTC", () => {
  expect(isoTime(new Date("2026-11-23T09:05:59+01:00"))).toBe("2026-11-23 08:05 UTC");
});
