/** Bench and the pages of products. The server renders all tables and bars. */

import "../styles/bench.css";
import "../styles/benchPage.css";
import "../styles/benchForest.css";
import "../styles/benchPicker.css";
import "../styles/picks.css";
import { initBenchCharts } from "../features/benchCharts";
import { initBenchLoad } from "../features/benchLoad";
import { initBenchPicker } from "../features/benchPicker";
import { initBenchScroll } from "../features/benchScroll";
import { initChoiceForms } from "../features/choiceForm";
import { initFold } from "../features/fold";

initBenchPicker();
initBenchScroll();
initBenchLoad();
initBenchCharts();
initFold();
initChoiceForms();
