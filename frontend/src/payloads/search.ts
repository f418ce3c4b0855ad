/** Mirrors `SearchHits` of `webapp/screens/payloads.py`. */

import { type Checked, list, string, struct } from "../lib/schema";

export const searchHits = struct({
  hits: list(struct({ group: string, title: string, address: string, detail: string })),
});

export type SearchHits = Checked<typeof searchHits>;
