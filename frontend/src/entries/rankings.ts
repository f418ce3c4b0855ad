/** Rankings. The server renders all bars; this script sends choices and weights, and opens long lists. */

import "../styles/rankings.css";
import { initChoiceForms } from "../features/choiceForm";
import { initRankings } from "../features/rankings";
import { initSavePicture } from "../features/savePicture";

initChoiceForms();
initRankings();
initSavePicture();
