/** The form of a schedule. Without a script, its buttons reload the page. */

import { initScheduleForm } from "../features/scheduleForm";

initScheduleForm();
