/** The plan editor. Without a script, its buttons reload the page; with a script they do not. */

import { initPlanForm } from "../features/planForm";
import { initPlanJobs } from "../features/planJobs";

initPlanForm();
initPlanJobs();
