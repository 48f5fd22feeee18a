/** Prints the manual page of this version, for `npm run build`. */
import { version } from "./main.js";
import { manPage } from "./man.js";

process.stdout.write(manPage(version()));
