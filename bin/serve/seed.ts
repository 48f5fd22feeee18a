/**
 * A seed: the locks and runs with which `holdfast dev` begins, from a JSON file. Locks are held by this process, with heartbeats, until it
 * ends or an operator breaks them; the options are those of the SDK, which checks them.
 */
import { readFile } from "node:fs/promises";
import { type AcquireOptions, type LockClient, type RunOptions, FinalError } from "../../lib/index.js";
import { CliError } from "../cli-error.js";

type Json = Readonly<Record<string, unknown>>;

/** The content of the file: `{ "locks": [{ "key", …options }], "runs": [{ "key", "result" or "error", …options }] }`. */
export interface Seed {
  readonly locks: readonly Json[];
  readonly runs: readonly Json[];
}

/** Reads the file. @throws CliError if it is missing or has another shape */
export async function readSeed(file: string): Promise<Seed> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw wrong(file, `it can't be read (${(error as NodeJS.ErrnoException).code ?? "?"})`);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrong(file, "it is not JSON");
  }
  if (!isObject(value)) throw wrong(file, "it must be an object with locks, runs or both");
  const { locks = [], runs = [], ...others } = value;
  const [other] = Object.keys(others);
  if (other !== undefined) throw wrong(file, `${other}: there is no such member; it has locks and runs`);
  return { locks: listOf(file, "locks", locks), runs: listOf(file, "runs", runs) };
}

/** Makes the locks and runs of the seed. @throws CliError naming the entry that the service or the SDK refused */
export async function plant(file: string, { locks, runs }: Seed, client: LockClient): Promise<void> {
  for (const [at, { key, ...options }] of locks.entries()) {
    const lease = await client.tryAcquire(key as string, options as AcquireOptions).catch(refused(file, `locks[${at}]`));
    if (!lease) throw wrong(file, `locks[${at}]: ${String(key)} is held already`);
  }
  for (const [at, { key, result, error, ...options }] of runs.entries()) {
    const work = (): unknown => {
      if (typeof error === "string") throw new FinalError(error);
      return result;
    };
    await client.runOnce(key as string, options as RunOptions, work).catch((failure: unknown) => {
      if (!(failure instanceof FinalError)) refused(file, `runs[${at}]`)(failure);
    });
  }
}

function listOf(file: string, name: string, value: unknown): readonly Json[] {
  if (Array.isArray(value) && value.every(isObject)) return value;
  throw wrong(file, `${name}: it must be a list of objects, each with a key`);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refused(file: string, entry: string): (error: unknown) => never {
  return (error) => {
    throw wrong(file, `${entry}: ${error instanceof Error ? error.message : String(error)}`);
  };
}

function wrong(file: string, what: string): CliError {
  return new CliError("usage", `--seed: ${file}: ${what}`);
}
