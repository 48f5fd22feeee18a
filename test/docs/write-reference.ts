/** `npm run docs:reference`: writes the reference of the SDK and of the HTTP API into docs/. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";
import { REFERENCE } from "./generated.js";
import { httpPage } from "./http-reference.js";
import { sdkPage } from "./sdk-reference.js";

const PAGES = { "docs/sdk.md": sdkPage, "docs/http-api.md": httpPage };

for (const path of REFERENCE) writeFileSync(join(ROOT, path), await PAGES[path]());
