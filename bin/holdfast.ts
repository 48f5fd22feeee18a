#!/usr/bin/env node
/** The command `holdfast`. It exits when nothing is left to do, with the status of the command. */
import { EXITS, SIGNAL_BASE } from "./exit-codes.js";
import { main } from "./main.js";
import { whenParentEnds } from "../infra/local/parent.js";

// The script of another program may start this as a job in the background, which is meant to outlive it.
if (process.env["npm_lifecycle_script"]?.includes("holdfast")) whenParentEnds(() => process.kill(process.pid, "SIGTERM"));

const status = (process.exitCode = await main(process.argv.slice(2)));
// A request that nobody waits for any more must not keep the process alive, nor the shell that wants to complete a word.
if (status > SIGNAL_BASE || status === EXITS.notPrinted.status || process.argv[2] === "complete") process.exit();
