/** The form of a schedule. Without script it works by its buttons. */

import { initScheduleForm } from "../features/scheduleForm";

initScheduleForm();
