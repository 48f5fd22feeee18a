/** A real browser for tests of pages: the Chromium of this machine. Without one, the tests that need it are skipped by name. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** The path of the browser, from the environment's `CHROMIUM` or the path; undefined if there is none. */
export const CHROMIUM: string | undefined =
  process.env["CHROMIUM"] ??
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((directory) => NAMES.map((name) => join(directory, name)))
    .find(isExecutable);

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Starts the browser. Root has no sandbox. */
export function startChromium(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error("There is no Chromium on the path, and CHROMIUM is not set");
  return chromium.launch({ executablePath: CHROMIUM, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}
