/** The comparison: its chart; the table behind it comes from the server. */

import { initCompareChart } from "../features/compareChart";

initCompareChart();
