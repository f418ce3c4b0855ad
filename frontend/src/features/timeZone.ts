/** Tells the server the viewer's time zone, in a cookie, so that its pages show local times. */

const YEAR_S = 31_536_000;

/** The zone in a document's cookies; "" for none. */
export function zoneIn(cookies: string): string {
  const pair = cookies.split("; ").find((each) => each.startsWith("timezone="));
  return pair?.slice("timezone=".length) ?? "";
}

/** Reloads a page with times in another zone, once: the cookie then contains the browser's zone. */
export function initTimeZone(): void {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || zoneIn(document.cookie) === zone) return;
  const secure = window.location.protocol === "https:" ? "; secure" : "";
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API needs HTTPS
  document.cookie = `timezone=${zone}; path=/; max-age=${YEAR_S}; samesite=lax${secure}`;
  if (zoneIn(document.cookie) !== zone) return; // cookies are disabled
  const shown = document.querySelector<HTMLElement>("[data-zone]")?.dataset.zone;
  if (shown && shown !== zone) window.location.reload();
}
