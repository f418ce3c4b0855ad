/** `ChartCeiling` of `webapp/screens/payloads.py`. */

import { type Checked, nullable, number, string, struct } from "../lib/schema";

export const chartCeiling = struct({ text: string, value: number, low: nullable(number), high: nullable(number) });

export type ChartCeiling = Checked<typeof chartCeiling>;
