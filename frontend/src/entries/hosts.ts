/** Pages of hosts. */

import "../styles/hosts.css";
import { initEnrolment } from "../features/enrolment";
import { initFold } from "../features/fold";
import { initWorkerLog } from "../features/workerLog";

initEnrolment();
initFold();
initWorkerLog();
