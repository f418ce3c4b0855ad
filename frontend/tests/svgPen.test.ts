import { expect, test } from "vitest";
import { isoTime } from "../src/lib/picture";
import { escaped, fontAttributes, paint } from "../src/lib/svgPen";

test("text in a picture cannot become an element", () => {
  expect(escaped('a < b & "c"')).toBe("a &#60; b &#38; &#34;c&#34;");
});

test("colour and opacity are apart", () => {
  expect(paint("fill", "#c4483f22", 1)).toBe('fill="#c4483f" fill-opacity="0.13"');
  expect(paint("stroke", "#2f7bd8", 1)).toBe('stroke="#2f7bd8"');
  expect(paint("stroke", "rgba(0, 0, 0, 0.1)", 0.5)).toBe('stroke="rgba(0, 0, 0, 0.1)" stroke-opacity="0.5"');
});

test("dates are written in ISO order and UTC", () => {
  expect(isoTime(new Date("2026-11-23T09:05:59+01:00"))).toBe("2026-11-23 08:05 UTC");
});

test("fonts become attributes, because the policy allows no styles in elements", () => {
  expect(fontAttributes('600 12px "Segoe UI", Arial')).toBe(
    'font-family="&#34;Segoe UI&#34;, Arial" font-size="12px" font-weight="600"',
  );
  expect(fontAttributes("normal bold 11px/1.2 Arial")).toBe('font-family="Arial" font-size="11px" font-weight="bold"');
  expect(fontAttributes("11px sans-serif")).toBe('font-family="sans-serif" font-size="11px"');
});
