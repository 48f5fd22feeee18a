/** Licences of the installed packages: each is one of a stated list, or an exception that has a name and a reason. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./tree.js";

/** A package of package-lock.json. */
export interface InstalledPackage {
  /** Its path in the lock file, such as `node_modules/valibot`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** An SPDX expression; `""` if the package states none. */
  readonly licence: string;
  /** True if only developers of this repository install it. */
  readonly isDev: boolean;
}

/** Licences that ask for no more than their own text beside a copy. */
const ALLOWED: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
]);

/** Packages under another licence, and the reason why that is acceptable. */
const EXCEPTIONS: readonly (readonly [name: RegExp, licence: string, reason: string])[] = [
  [/^caniuse-lite$/, "CC-BY-4.0", "Babel reads it in mutation tests; nothing of it is changed or passed on"],
  [/^axe-core$/, "MPL-2.0", "tests load it into a browser; nothing of it is changed or passed on"],
  [/^lightningcss(?:-[\w-]+)?$/, "MPL-2.0", "vite loads it in tests; nothing of it is changed or passed on"],
];

/** A licence as manifests state it: today as text, long ago as an object. */
type Stated = string | { readonly type?: string };

interface Manifest {
  readonly name?: string;
  readonly license?: Stated;
  readonly licenses?: Stated | readonly Stated[];
}

interface Locked extends Manifest {
  readonly version?: string;
  readonly dev?: boolean;
  readonly link?: boolean;
}

/** Returns every package of the lock file. A package for another machine isn't installed, so its licence is the lock file's. */
export function installedPackages(root = ROOT): readonly InstalledPackage[] {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as { packages: Record<string, Locked> };
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && link !== true)
    .map(([path, locked]) => {
      const file = join(root, path, "package.json");
      const manifest = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Manifest) : locked;
      const name = manifest.name ?? path.replace(/^.*node_modules\//, "");
      return { path, name, version: locked.version ?? "", licence: licenceOf(manifest), isDev: locked.dev === true };
    });
}

function licenceOf({ license, licenses }: Manifest): string {
  const stated = [license ?? licenses ?? []].flat() as readonly Stated[];
  return stated.map((one) => (typeof one === "string" ? one : (one.type ?? ""))).join(" AND ");
}

/** True if the SPDX expression can be met with allowed licences alone. */
export function isAllowed(licence: string): boolean {
  const plain = licence.replaceAll(/^\(|\)$/g, "");
  return plain.split(" OR ").some((choice) => choice.split(" AND ").every((one) => ALLOWED.has(one)));
}

/** Describes each package whose licence is neither allowed nor an exception. */
export function refusedLicences(packages: readonly InstalledPackage[]): readonly string[] {
  const isException = ({ name, licence }: InstalledPackage): boolean =>
    EXCEPTIONS.some(([names, itsLicence]) => names.test(name) && itsLicence === licence);
  return packages
    .filter((one) => !isAllowed(one.licence) && !isException(one))
    .map(({ path, version, licence }) => `${path} ${version}: ${licence === "" ? "no licence" : licence}`);
}
