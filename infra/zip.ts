/** Writes a zip file, with which Lambda takes its code. The same files give the same bytes: they are sorted, and their times are alike. */
import { zipSync } from "fflate";

/** The format's first day. */
const FIRST_DAY = new Date(1980, 0, 1);
const UNIX = 3;
/** A regular file that everybody may read. It stands in the upper half of the attributes. */
const MODE = 0o100644;

/** Returns the zip file of these files, given by their paths in it. */
export function zipOf(files: Readonly<Record<string, Uint8Array>>): Buffer {
  const sorted = Object.fromEntries(Object.entries(files).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return Buffer.from(zipSync(sorted, { level: 9, mtime: FIRST_DAY, os: UNIX, attrs: (MODE << 16) >>> 0 }));
}
