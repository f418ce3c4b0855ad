/** Bytes written to drives: fetched again when a trial has ended, because drives are read then. */

import { find, showProblem } from "../lib/dom";
import type { LiveRun } from "../payloads/live";

const LIMIT_MS = 20_000;

export function initWear(): { take: (run: LiveRun) => void } {
  const box = find("wear", HTMLElement);
  const url = box?.dataset.url;
  let shown = -1; // number of ended trials in the current content
  let asking = false;

  const fetchAgain = async (ended: number): Promise<void> => {
    if (!box || !url || asking) return;
    asking = true;
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(LIMIT_MS) });
      if (!response.ok || response.redirected) throw new Error(`The server answered ${response.status}.`);
      box.innerHTML = await response.text(); // escaped by the server's templates
      shown = ended;
    } catch (error) {
      showProblem(`The bytes written to drives are out of date: ${error instanceof Error ? error.message : "unknown"}`);
    } finally {
      asking = false;
    }
  };

  return {
    take: (run) => {
      const ended = run.done + run.failed + run.cancelled;
      if (shown < 0) shown = ended;
      else if (ended !== shown) void fetchAgain(ended);
    },
  };
}
