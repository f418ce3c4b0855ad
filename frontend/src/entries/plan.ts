/** The page of a plan: shows the job of the trial under the cursor. */

import { initPlanJobs } from "../features/planJobs";

initPlanJobs();
