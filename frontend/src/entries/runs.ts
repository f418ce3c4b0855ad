/** The list of runs: actions on selected rows. */

import "../styles/bulk.css";
import { initBulk } from "../features/bulk";

initBulk();
