/** The comparison: its charts; the table behind it comes from the server. */

import { initCompareCharts } from "../features/compareChart";

initCompareCharts();
