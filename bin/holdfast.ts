#!/usr/bin/env node
/** The command `holdfast`. It ends by itself when nothing is left to do, with the status of what was done. */
import { EXITS, SIGNAL_BASE } from "./exit-codes.js";
import { main } from "./main.js";

const status = (process.exitCode = await main(process.argv.slice(2)));
// A request that was given up must not keep the process.
if (status > SIGNAL_BASE || status === EXITS.notPrinted.status) process.exit();
