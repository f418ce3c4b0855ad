/** What runs now, one card a run. */

import { initNowCards } from "../features/nowCards";

initNowCards();
