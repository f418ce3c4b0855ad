/** The page Results: the form with filters and columns. */

import "../styles/picks.css";
import { initChoiceForms } from "../features/choiceForm";

initChoiceForms();
