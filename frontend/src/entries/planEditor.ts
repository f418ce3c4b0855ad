/** The plan editor. Without script it works by its buttons; with it they need no new page. */

import { initPlanForm } from "../features/planForm";
import { initPlanJobs } from "../features/planJobs";

initPlanForm();
initPlanJobs();
