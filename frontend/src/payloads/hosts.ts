/** Mirrors `webapp/screens/hosts/worker_log.py`. */

import { type Checked, list, number, oneOf, string, struct } from "../lib/schema";

export const enrolment = struct({
  state: oneOf("waiting", "expired", "enrolled", "heard"),
  host: string,
  url: string,
  seconds_left: number,
});

export type Enrolment = Checked<typeof enrolment>;

export const logTail = struct({
  lines: list(struct({ at: string, level: string, text: string, about: string, url: string })),
  last: number,
});

export type LogTail = Checked<typeof logTail>;
export type LogTailLine = LogTail["lines"][number];
