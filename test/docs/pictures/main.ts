/** `npm run pictures`: makes the pictures of the docs anew, into docs/pictures/. Needs Chromium on the path, and util-linux's `script`. */
import { mkdirSync } from "node:fs";
import { pictureConsole } from "./console.js";
import { FOLDER } from "./pictures.js";
import { pictureTour } from "./tour.js";

mkdirSync(FOLDER, { recursive: true });
await pictureTour();
await pictureConsole();
