/**
 * `npm run check:dependencies`: the licences of all packages, and the known vulnerabilities of those that reach users: the package's
 * dependencies, and what the functions' bundle contains. Without the registry's audit it says so in a box, and passes.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleFunction } from "../../infra/bundle.js";
import { describeAudit } from "./audit.js";
import { installedPackages, refusedLicences } from "./licences.js";
import { ROOT } from "./tree.js";

/** Bundles the functions' code, and returns the names of the packages in it. */
async function bundledNames(): Promise<readonly string[]> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bundle-"));
  try {
    return (await bundleFunction(directory)).map(({ name }) => name);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const packages = installedPackages();
const refused = refusedLicences(packages);
console.log(`licences: ${packages.length} packages, ${refused.length} refused`);
for (const line of refused) console.error(line);

const shipped = new Set([...packages.filter(({ isDev }) => !isDev).map(({ name }) => name), ...(await bundledNames())]);
const { stdout } = spawnSync("npm", ["audit", "--json"], { cwd: ROOT, encoding: "utf8", timeout: 60_000 });
const { text, isFailure } = describeAudit(stdout, shipped);
console.log(text);
process.exitCode = refused.length > 0 || isFailure ? 1 : 0;
