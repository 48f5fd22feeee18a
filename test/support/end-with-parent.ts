/** Imported by scripts that tests start: ends this process when its parent has ended, however that ended. */
import { whenParentEnds } from "../../infra/local/parent.js";

whenParentEnds(() => process.exit(1));
