/** Mirrors `webapp/screens/imports/upload_views.py`. */

import { list, number, string, struct } from "../lib/schema";

export const begun = struct({ files_url: string, end_url: string, url: string });

export const added = struct({ files: number, results: number, refused: number });

export const importProblem = struct({ problem: string });

export const columnPreview = struct({ columns: list(string), problem: string, row: string });

export const labelPreview = struct({
  suggested: string,
  problem: string,
  matched: number,
  of: number,
  logs: number,
  examples: list(struct({ path: string, text: string })),
});
