/** The queue: kept fresh while it is looked at. */

import { initQueue } from "../features/queue";

initQueue();
