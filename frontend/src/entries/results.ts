/** Pages whose only script is a form with choices: Results, Acceptance test. */

import "../styles/picks.css";
import { initChoiceForms } from "../features/choiceForm";

initChoiceForms();
