/** The table of results: its form of filters and columns. */

import "../styles/picks.css";
import { initChoiceForms } from "../features/choiceForm";

initChoiceForms();
