/** The page Explore: its form and charts. The server renders the tables. */

import "../styles/picks.css";
import "../styles/explore.css";
import "../styles/heat.css";
import { initChoiceForms } from "../features/choiceForm";
import { initCompareCharts } from "../features/compareChart";
import { initLatencyCharts } from "../features/latencyCharts";
import { initScatterCharts } from "../features/scatterCharts";
import { initSortTables } from "../features/sortTable";
import { initTimeLines } from "../features/timeLines";

initChoiceForms();
initCompareCharts();
initLatencyCharts();
initScatterCharts();
initTimeLines();
initSortTables();
