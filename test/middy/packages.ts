/**
 * Packages that some tests need and an installation may lack: those tests are skipped then, and say why. What
 * package.json names must be there, so that nothing is skipped where it counts.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";

const require = createRequire(import.meta.url);

/** Whether the package can be imported. */
export function isInstalled(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch (error) {
    // A package of ES modules alone is there, and not for require.
    return (error as NodeJS.ErrnoException).code === "ERR_PACKAGE_PATH_NOT_EXPORTED";
  }
}

/** Whether package.json says that it is needed here. */
export function isExpected(name: string): boolean {
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  return name in devDependencies;
}

/** Loads it, at run time alone: a bundler must not look for what may not be there. */
export async function load<Module>(name: string): Promise<Module | undefined> {
  return isInstalled(name) ? ((await import(/* @vite-ignore */ name)) as Module) : undefined;
}

/** What a title says of tests that need a package, where it is missing. */
export function needing(...names: readonly string[]): { readonly missing: boolean; readonly note: string } {
  const absent = names.filter((name) => !isInstalled(name));
  return { missing: absent.length > 0, note: absent.length > 0 ? ` (SKIPPED: ${absent.join(", ")} not installed)` : "" };
}
