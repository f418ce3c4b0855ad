/** The queue, updated while the page is visible. */

import { initQueue } from "../features/queue";

initQueue();
