/** What runs now, one card a run. */

import "../styles/hosts.css";
import { initNowCards } from "../features/nowCards";

initNowCards();
