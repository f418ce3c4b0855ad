/** Pages of hosts. */

import "../styles/hosts.css";
import { initEnrolment } from "../features/enrolment";
import { initWorkerLog } from "../features/workerLog";

initEnrolment();
initWorkerLog();
