/** The overview: one card per active run. */

import "../styles/hosts.css";
import "../styles/overview.css";
import { initNowCards } from "../features/nowCards";

initNowCards();
