/** The recorded scores: how many changes of each file were noticed, and the code of the file that they belong to. */
import { createHash } from "node:crypto";
import { transformSync } from "esbuild";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The smallest accepted share of mutants that a test notices, in percent. */
export const SCORE_MIN = 95;

/** The mutants of one file. */
export interface FileScore {
  /** Digest of the file's code, as {@link digestOf} makes it. */
  readonly digest: string;
  readonly noticed: number;
  /** No test fails with these changes. */
  readonly survived: number;
  /** Changes that can't be noticed, each with the reason in a comment of the file. */
  readonly excused: number;
}

/** Everything that `npm run mutation -- --record` writes. */
export interface Results {
  readonly date: string;
  readonly machine: string;
  readonly parts: Readonly<Record<string, Readonly<Record<string, FileScore>>>>;
}

/** The file of the recorded scores. */
export const RESULTS_FILE = fileURLToPath(new URL("results.json", import.meta.url));

/** The part of a report of Stryker that is read here. */
export interface Report {
  readonly files: Readonly<
    Record<string, { readonly source: string; readonly mutants: readonly { readonly status: string; readonly statusReason?: string }[] }>
  >;
}

/** Returns the recorded scores. */
export function recordedResults(): Results {
  if (!existsSync(RESULTS_FILE)) return { date: "", machine: "", parts: {} };
  return JSON.parse(readFileSync(RESULTS_FILE, "utf8")) as Results;
}

/**
 * Returns the digest of a file's code, without types and comments: they are not mutated. The comments that excuse a mutant count. A new
 * version of esbuild may write the same code otherwise, and then every file is scored anew.
 */
export function digestOf(text: string): string {
  const { code } = transformSync(text, { loader: "ts", minifyWhitespace: true, legalComments: "none" });
  const excuses = text.match(/\/\/ Stryker .*/g) ?? [];
  return createHash("sha256")
    .update([code, ...excuses].join("\n"))
    .digest("hex")
    .slice(0, 12);
}

/** Stryker's own reasons for kinds of mutants that are left out everywhere. */
const LEFT_OUT = /excluded mutation|[Ss]tatic mutant/;

export function scoresIn({ files }: Report): Readonly<Record<string, FileScore>> {
  return Object.fromEntries(
    Object.entries(files).map(([path, { source, mutants }]) => {
      const count = (...statuses: readonly string[]): number => mutants.filter(({ status }) => statuses.includes(status)).length;
      const excused = mutants.filter(({ status, statusReason = "" }) => status === "Ignored" && !LEFT_OUT.test(statusReason));
      const noticed = count("Killed", "Timeout", "RuntimeError");
      return [path, { digest: digestOf(source), noticed, survived: count("Survived", "NoCoverage"), excused: excused.length }];
    }),
  );
}

/** Returns the share of mutants that were noticed, in percent; 100 without a mutant. */
export function scoreOf(files: readonly Pick<FileScore, "noticed" | "survived">[]): number {
  const noticed = files.reduce((sum, file) => sum + file.noticed, 0);
  const all = files.reduce((sum, file) => sum + file.noticed + file.survived, 0);
  return all === 0 ? 100 : (100 * noticed) / all;
}
