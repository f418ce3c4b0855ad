/** Waits for the enrolment of a host, and then shows a link to it. */

import { type Enrolment, enrolment } from "#payloads/hosts";
import { setText } from "../lib/dom";
import { duration } from "../lib/format";
import { fetchJson, startPolling } from "../lib/poll";

export function initEnrolment(): void {
  const box = document.getElementById("enrolment");
  const url = box?.dataset.url;
  if (!box || !url) return;
  startPolling({
    visibleMs: 1000,
    hiddenMs: 5000,
    exchange: async (signal) => {
      const now = enrolment(await fetchJson(url, signal));
      paint(box, now);
      return now.state === "heard" || now.state === "expired" ? "end" : "later";
    },
    failed: () => setText(box.querySelector("[data-left]"), "no answer from the server, trying again"),
  });
}

function paint(box: HTMLElement, now: Enrolment): void {
  setText(box.querySelector("[data-left]"), now.state === "waiting" ? `${duration(now.seconds_left)} left` : "");
  const place = box.querySelector("[data-state]");
  if (!place) return;
  if (now.state === "waiting") setText(place, "Waiting for the worker…");
  else if (now.state === "expired") setText(place, "The command has expired. Create a new one.");
  else place.replaceChildren(link(now), tail(now));
}

function link(now: Enrolment): HTMLAnchorElement {
  const made = document.createElement("a");
  made.href = now.url;
  made.textContent = now.host;
  return made;
}

function tail(now: Enrolment): string {
  return now.state === "heard" ? " is enrolled and its worker is online." : " is enrolled. Waiting for its worker…";
}
