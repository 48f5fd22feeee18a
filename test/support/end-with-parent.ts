/** Imported by scripts that tests start: ends this process when its parent has ended, however that ended. */

const CHECK_MS = 500;

const parent = process.ppid;
setInterval(() => process.ppid !== parent && process.exit(1), CHECK_MS).unref();
