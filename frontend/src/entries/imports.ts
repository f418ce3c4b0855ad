/** The page of imports. */

import { initImportForm } from "../features/importForm";

initImportForm();
