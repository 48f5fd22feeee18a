/**
 * Every client plays every scene, against a scripted service. The SDK always does; a client in another language does if `HOLDFAST_DRIVER` has
 * its name and its command: `HOLDFAST_DRIVER="python=python3 clients/python/tests/driver.py"`.
 */
import { afterAll, describe, expect, it } from "vitest";
import { type Plugin, build } from "esbuild";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Driver } from "./driver.js";
import { MISTAKES, type Mistake } from "./mistakes.js";
import { type Played, play } from "./play.js";
import type { Scene } from "./scene.js";
import { SCENES } from "./scenes.js";
import { ROOT } from "../tidy/tree.js";

/** The scenes that are played at once. They mostly wait. */
const AT_ONCE = 6;
/** A scene is played so often at most, if the machine is too slow to tell. */
const PLAYS = 4;

const folder = mkdtempSync(join(tmpdir(), "holdfast-drivers-"));

/** Returns the path of the SDK's driver in one file: compiled at every start, it would take a second of processor time. */
async function bundled(name: string, plugins: readonly Plugin[] = []): Promise<string> {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL("drivers/typescript.ts", import.meta.url))],
    outfile,
    bundle: true,
    packages: "external",
    ignoreAnnotations: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
    plugins: [...plugins],
  });
  return outfile;
}
const bundle = await bundled("typescript");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The drivers: the name of each, and its command. */
const DRIVERS: readonly (readonly [name: string, command: readonly string[]])[] = (process.env["HOLDFAST_DRIVER"] ?? "typescript=")
  .split(";")
  .map((entry) => {
    const [name = "", command = ""] = entry.split(/=(.*)/s);
    return [name.trim(), name.trim() === "typescript" ? [process.execPath, bundle] : command.trim().split(/\s+/)] as const;
  });

/** Drivers that have no scene under way. A driver that has failed one is not used again. */
class Pool {
  readonly #idle: Driver[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #all: Driver[] = [];
  #free = AT_ONCE;

  constructor(readonly command: readonly string[]) {}

  async play(scene: Scene): Promise<Played> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free--;
    try {
      let played: Played;
      let plays = 0;
      do played = await this.#once(scene);
      while (played.unsure && ++plays < PLAYS);
      return played;
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  /** True if something is wrong in one of a few plays: a slow machine can hide a mistake. */
  async fails(scene: Scene): Promise<boolean> {
    for (let plays = 0; plays < PLAYS; plays++) if ((await this.play(scene)).wrong.length > 0) return true;
    return false;
  }

  async #once(scene: Scene): Promise<Played> {
    const driver = this.#idle.pop() ?? this.#start();
    const played = await play(scene, driver);
    if (played.wrong.length === 0) this.#idle.push(driver);
    else await driver.end();
    return played;
  }

  #start(): Driver {
    const driver = new Driver(this.command);
    this.#all.push(driver);
    return driver;
  }

  async end(): Promise<void> {
    await Promise.all(this.#all.map((driver) => driver.end()));
  }
}

describe.each(DRIVERS)("the client %s", (name, command) => {
  const pool = new Pool(command);
  afterAll(() => pool.end());

  // Not `each`, which shortens the names.
  for (const scene of SCENES)
    it.concurrent(scene.name, async () => {
      const { wrong, cannot } = await pool.play(scene);
      // A client that can't play a scene, or still makes the mistake, has its reason in the table; one that can has none.
      if (scene.fails?.[name] === undefined) expect([...new Set(wrong)]).toEqual([]);
      else expect(wrong, "it is mended: take its reason out of the table").not.toEqual([]);
      expect(cannot === undefined, `${cannot} can't be carried out`).toBe(scene.cannot?.[name] === undefined);
    });
});

/** Returns the source of a file with the mistake. */
function mistakenSource({ file, text, mistaken }: Mistake): string {
  const source = readFileSync(join(ROOT, file), "utf8");
  expect(source, `${file} has the line that keeps from the mistake`).toContain(text);
  return source.replace(text, () => mistaken);
}

/** The command of a driver whose client makes the mistake, by the name of the client. */
const MISTAKEN: Readonly<
  Record<Mistake["client"], (mistake: Mistake, name: string, command: readonly string[]) => Promise<readonly string[]>>
> = {
  async typescript(mistake, name) {
    const contents = mistakenSource(mistake);
    const setup: Plugin["setup"] = ({ onLoad }) =>
      onLoad({ filter: /\.ts$/ }, ({ path }) => (path === join(ROOT, mistake.file) ? { contents, loader: "ts" } : undefined));
    return [process.execPath, await bundled(name, [{ name, setup }])];
  },
  // Its driver imports the module from the first folder of the path.
  async python(mistake, name, command) {
    mkdirSync(join(folder, name, "holdfast"), { recursive: true });
    writeFileSync(join(folder, name, "holdfast", basename(mistake.file)), mistakenSource(mistake));
    return ["env", `PYTHONPATH=${join(folder, name)}`, ...command];
  },
  // The class with the mistake comes before the others.
  async java(mistake, name, command) {
    const classes = join(folder, name);
    mkdirSync(classes);
    const source = join(classes, basename(mistake.file));
    writeFileSync(source, mistakenSource(mistake));
    const at = command.indexOf("-cp") + 1;
    const path = command[at] ?? "";
    await promisify(execFile)("javac", ["-proc:none", "-d", classes, "-cp", path, source], { cwd: ROOT });
    return command.with(at, `${classes}${delimiter}${path}`);
  },
};

describe("the controls", () => {
  for (const [at, mistake] of MISTAKES.entries()) {
    const [, command] = DRIVERS.find(([name]) => name === mistake.client) ?? [];
    const { client, file, fails } = mistake;
    it.runIf(command).concurrent(`${client} with a mistake in ${basename(file)} fails: ${fails[0]}`, { timeout: 180_000 }, async () => {
      const pool = new Pool(await MISTAKEN[client](mistake, `mistake-${at}`, command ?? []));
      try {
        const scenes = SCENES.filter(({ name }) => fails.includes(name));
        expect(scenes.map(({ name }) => name).sort()).toEqual([...fails].sort());
        const failed = await Promise.all(scenes.map((scene) => pool.fails(scene)));
        expect(scenes.filter((_scene, index) => !failed[index]).map(({ name }) => name)).toEqual([]);
      } finally {
        await pool.end();
      }
    });
  }

  it.each(["python", "java"])("are a mistake of %s for each property of which it plays a scene", (name) => {
    const properties = (scenes: readonly Scene[]): ReadonlySet<string> => new Set(scenes.map(({ property }) => property));
    const fails = MISTAKES.filter(({ client }) => client === name).flatMap((mistake) => mistake.fails);
    expect(properties(SCENES.filter((scene) => fails.includes(scene.name)))).toEqual(
      properties(SCENES.filter(({ cannot }) => cannot?.[name] === undefined)),
    );
  });
});
