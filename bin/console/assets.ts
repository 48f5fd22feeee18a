/** The files of the console's page. The package has them made; in a clone they are made from their sources at the first request. */
import { readFile } from "node:fs/promises";
import type { Assets, Bundled } from "./files.js";
import { assetsOf, MADE } from "./files.js";

/** Returns the files. */
export async function loadAssets(): Promise<Assets> {
  const [page, icon, made] = await Promise.all([read("index.html"), read("icon.svg"), code()]);
  return assetsOf({ ...made, page, icon });
}

async function code(): Promise<Bundled> {
  if (!import.meta.url.endsWith(".ts")) return { script: await read(MADE.script), style: await read(MADE.style) };
  const { bundlePage } = await import("./bundle.js");
  return bundlePage();
}

function read(name: string): Promise<string> {
  return readFile(new URL(`page/${name}`, import.meta.url), "utf8");
}
