/** The page Trend. */

import { initChoiceForms } from "../features/choiceForm";
import { initTrendChart } from "../features/trendChart";

initChoiceForms();
initTrendChart();
