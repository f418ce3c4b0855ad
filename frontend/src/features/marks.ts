/** Tell an open page that results were marked as invalid or valid. */

import { marks } from "#payloads/marks";
import { find } from "../lib/dom";
import { fetchJson, startPolling } from "../lib/poll";
import { reloadWhenFree } from "../lib/reload";

/** The page of a run reloads; other pages show a notice, because the change may not affect them. */
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
    failed: () => undefined, // the next answer has the same count
  });
}
