/** Features of every page. */

import "../styles/look.css";
import "../styles/bar.css";
import "../styles/states.css";
import "../styles/tables.css";
import "../styles/parts.css";
import "../styles/controls.css";
import "../styles/grid.css";
import "../styles/charts.css";
import "../styles/people.css";
import "../styles/notices.css";
import "../styles/plan.css";
import "../styles/schedules.css";
import "../styles/print.css";
import { initCompareSelected } from "../features/compareSelected";
import { initMarks } from "../features/marks";
import { initCopy, initDialogs, initFilters, initMenu, initPersonMenu, initTimes } from "../features/page";
import { initPalette } from "../features/palette";
import { initScrollBoxes } from "../features/scrollBoxes";
import { initShortcuts } from "../features/shortcuts";
import { initThemeChoice, initThemeToggle } from "../features/themeChoice";
import { initTimeZone } from "../features/timeZone";

initTimeZone();
initThemeToggle();
initThemeChoice();
initMenu();
initPersonMenu();
initPalette();
initShortcuts();
initTimes();
initCopy();
initDialogs();
initFilters();
initMarks();
initCompareSelected();
initScrollBoxes();
