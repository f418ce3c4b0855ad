/** Marks of invalid results that somebody sets elsewhere reach a page that is open. */

import { find } from "../lib/dom";
import { fetchJson, startPolling } from "../lib/poll";
import { reloadWhenFree } from "../lib/reload";
import { marks } from "../payloads/marks";

/** A page of one run is loaded anew by itself; others only say so, since what they show may not be concerned. */
export function initMarks(): void {
  const box = find("marks", HTMLDivElement);
  const url = box?.dataset.url;
  if (!box || !url) return;
  startPolling({
    visibleMs: 5000,
    hiddenMs: 60_000,
    exchange: async (signal) => {
      const { count } = marks(await fetchJson(url, signal));
      if (String(count) === box.dataset.count) return "later";
      box.hidden = false;
      if (!("reload" in box.dataset)) return "end";
      return reloadWhenFree() ? "end" : "later";
    },
    failed: () => undefined, // what is shown stays true as of its loading; the next answer catches up
  });
}
