/** `npm run deployed:install`: installs the emulator, and does nothing else. Fails if Python or its registry is missing. */
import { install } from "./emulator.js";

await install();
