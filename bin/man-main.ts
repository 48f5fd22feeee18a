/** Prints the manual page of this version, for `npm run build`. */
import { readFileSync } from "node:fs";
import { manPage } from "./man.js";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { readonly version: string };
process.stdout.write(manPage(version));
