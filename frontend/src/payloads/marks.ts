/** Mirrors `Marks` of `webapp/screens/payloads.py`. */

import { number, struct } from "../lib/schema";

export const marks = struct({ count: number });
