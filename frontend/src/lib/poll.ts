/** Polls the server, one request at a time: once a second, more slowly if the page is hidden or the server is unavailable. */

export interface Poll {
  readonly visibleMs: number;
  readonly hiddenMs: number;
  /** One exchange. `again`: repeat at once, `later`: at the usual interval, `end`: stop. */
  readonly exchange: (signal: AbortSignal) => Promise<"again" | "later" | "end">;
  readonly failed: (error: unknown) => void;
}

const SLOWEST_MS = 15_000;
const EXCHANGE_LIMIT_MS = 20_000;

/** The delay after consecutive failures: 1, 2, 4 … seconds. */
export function pauseMs(baseMs: number, failures: number): number {
  return Math.min(baseMs * 2 ** failures, Math.max(baseMs, SLOWEST_MS));
}

export function startPolling(poll: Poll): void {
  let failures = 0;
  let timer = 0;
  let busy = false;

  const base = (): number => (document.hidden ? poll.hiddenMs : poll.visibleMs);
  const schedule = (delayMs: number): void => {
    window.clearTimeout(timer);
    timer = window.setTimeout(turn, delayMs);
  };
  const turn = async (): Promise<void> => {
    busy = true;
    try {
      const next = await poll.exchange(AbortSignal.timeout(EXCHANGE_LIMIT_MS));
      failures = 0;
      if (next === "end") return document.removeEventListener("visibilitychange", wake);
      schedule(next === "again" ? 0 : base());
    } catch (error) {
      failures += 1;
      poll.failed(error);
      schedule(pauseMs(base(), failures));
    } finally {
      busy = false;
    }
  };
  const wake = (): void => {
    if (!document.hidden && !busy) schedule(0);
  };
  document.addEventListener("visibilitychange", wake);
  schedule(0);
}

/** GET a JSON response. Throws a readable error if the session has ended. */
export async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { headers: { Accept: "application/json" }, signal });
  if (response.redirected || response.status === 401) throw new Error("You are logged out. Reload the page to log in.");
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response.json();
}
