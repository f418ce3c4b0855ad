/** Sections that the server renders again when a trial has ended: a search, bytes written to drives, settings. */

import type { LiveRun } from "#payloads/live";
import { showProblem } from "../lib/dom";

const LIMIT_MS = 20_000;

export function initFreshSections(): { take: (run: LiveRun) => void } {
  const sections = [...document.querySelectorAll<HTMLElement>("[data-fresh-url]")].map(initSection);
  return {
    take: (run) => {
      for (const take of sections) take(run.done + run.failed + run.cancelled);
    },
  };
}

/** A function that takes the number of ended trials and fetches the section again if the number has changed. */
function initSection(box: HTMLElement): (ended: number) => void {
  let shown = -1; // number of ended trials in the current content
  let asking = false;

  const fetchAgain = async (ended: number): Promise<void> => {
    if (asking) return;
    asking = true;
    try {
      const response = await fetch(box.dataset.freshUrl ?? "", { signal: AbortSignal.timeout(LIMIT_MS) });
      if (!response.ok || response.redirected) throw new Error(`The server answered ${response.status}.`);
      const html = await response.text(); // escaped by the server's templates
      const unfolded = [...box.querySelectorAll("details")].map((details) => details.open);
      box.innerHTML = html;
      box.querySelectorAll("details").forEach((details, place) => {
        details.open = unfolded[place] ?? false;
      });
      shown = ended;
    } catch (error) {
      const why = error instanceof Error ? error.message : "unknown";
      showProblem(`“${box.querySelector("h2")?.textContent}” is out of date: ${why}`);
    } finally {
      asking = false;
    }
  };

  return (ended) => {
    if (shown < 0) shown = ended;
    else if (ended !== shown) void fetchAgain(ended);
  };
}
