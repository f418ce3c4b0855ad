/** The progress of a live run in the title and the icon of the browser's tab. */

import type { LiveRun } from "#payloads/live";

const CIRCLE = 2 * Math.PI * 8; // circumference of the ring in the icon

export function initTabProgress(): (run: LiveRun) => void {
  const title = document.title;
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const plain = icon?.href ?? "";
  let shown = "";
  return (run) => {
    const share = run.ended ? null : run.progress / Math.max(1, run.total);
    document.title = share === null ? `${run.state_label} · ${title}` : `${Math.floor(100 * share)} % · ${title}`;
    const href = share === null ? plain : ring(share, run.state === "paused");
    if (icon && href !== shown) icon.href = href;
    shown = href;
  };
}

/** An icon with a ring that fills clockwise, grey while the run is paused; a data URL. */
export function ring(share: number, paused: boolean): string {
  const colour = paused ? "#8a929c" : "#2f7bd8";
  const circle = (stroke: string, dashes: string): string =>
    `<circle cx="10" cy="10" r="8" stroke="${stroke}" ${dashes} transform="rotate(-90 10 10)"/>`;
  const done = circle(colour, `stroke-dasharray="${(share * CIRCLE).toFixed(1)} ${CIRCLE.toFixed(1)}"`);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20" fill="none" stroke-width="4">${circle("#c8d0da", "")}${done}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
