#!/usr/bin/env node
/** The command `holdfast`. It ends by itself when nothing is left to do, with the status of what was done. */
import { main } from "./main.js";

process.exitCode = await main(process.argv.slice(2));
