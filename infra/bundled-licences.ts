/** The licences of the packages inside a bundle, which must go with every copy of it. A minified bundle has lost them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A package whose code is in a bundle. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** The name of its licence, as it states it. */
  readonly licence: string;
  /** The texts of its licence and notice files; `""` if it has none. */
  readonly text: string;
}

const PACKAGE = /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const LEGAL_FILE = /^(?:licen[cs]e|copying|notice)\b/i;

/** Returns the packages that these files, the inputs of a bundle, belong to, by name. */
export function bundledPackages(files: readonly string[]): readonly BundledPackage[] {
  const directories = new Set(files.flatMap((file) => PACKAGE.exec(file)?.[0] ?? []));
  return Array.from(directories, packageAt).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function packageAt(directory: string): BundledPackage {
  const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Record<"name" | "version" | "license", string>;
  const files = readdirSync(directory).filter((file) => LEGAL_FILE.test(file));
  const text = files.map((file) => readFileSync(join(directory, file), "utf8").trim()).join("\n\n");
  return { name: manifest.name, version: manifest.version, licence: manifest.license, text };
}

/** Returns one text with the licence of each package; packages with the same text share it. */
export function licencesText(packages: readonly BundledPackage[]): string {
  const texts = new Map<string, string[]>();
  for (const { name, version, licence, text } of packages) texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${licence})`]);
  const parts = Array.from(texts, ([text, names]) => `${names.join("\n")}\n\n${text === "" ? "No text of its own." : text}\n`);
  return ["The code beside this file contains these packages.\n", ...parts].join(`\n${"-".repeat(80)}\n\n`);
}
