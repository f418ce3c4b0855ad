/** The page of a plan: shows the fio job of the trial under the cursor. */

import { initPlanJobs } from "../features/planJobs";

initPlanJobs();
