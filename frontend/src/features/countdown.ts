/** Countdowns in seconds: elements with data-until (ISO 8601). */

import { setText } from "../lib/dom";

/** "59:07", "1:02:03" with hours; "0:00" after the time. */
export function remaining(milliseconds: number): string {
  const left = Math.max(0, Math.floor(milliseconds / 1000));
  const [hours, minutes, seconds] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
  const two = (value: number): string => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

/** `over` is called once, at the earliest of the times. */
export function initCountdowns(over: () => void): void {
  const timers = [...document.querySelectorAll<HTMLElement>("[data-until]")];
  if (!timers.length) return;
  const paint = (): void => {
    const left = timers.map((timer) => new Date(timer.dataset.until ?? "").getTime() - Date.now());
    timers.forEach((timer, index) => {
      setText(timer, remaining(left[index] ?? 0));
    });
    if (left.some((each) => each <= 0)) {
      window.clearInterval(ticking);
      over();
    }
  };
  const ticking = window.setInterval(paint, 1000);
  paint();
}
