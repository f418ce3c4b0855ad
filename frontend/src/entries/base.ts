/** On every page. */

import "../styles/app.css";
import { initCopy, initDialogs, initFilters, initMenu, initTimes } from "../features/page";
import { initThemeToggle } from "../features/themeChoice";

initThemeToggle();
initMenu();
initTimes();
initCopy();
initDialogs();
initFilters();
