/** One plan: the fio job of the trial under the cursor. */

import { initPlanJobs } from "../features/planJobs";

initPlanJobs();
