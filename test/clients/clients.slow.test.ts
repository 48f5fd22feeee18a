/**
 * Every client plays every scene, against a scripted service. The SDK always does; a client in another language does if `HOLDFAST_DRIVER` has
 * its name and its command: `HOLDFAST_DRIVER="python=python3 clients/python/tests/driver.py"`.
 */
import { afterAll, describe, expect, it } from "vitest";
import { type Plugin, build } from "esbuild";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Driver } from "./driver.js";
import { type Played, play } from "./play.js";
import { SCENES } from "./scenes.js";
import type { Control, Scene } from "./scene.js";
import { ROOT } from "../tidy/tree.js";

/** The scenes that are played at once. They mostly wait. */
const AT_ONCE = 6;
/** A scene is played so often at most, if the machine is too slow to tell. */
const PLAYS = 4;

const folder = mkdtempSync(join(tmpdir(), "holdfast-drivers-"));

/** Returns the path of the SDK's driver in one file: compiled at every start, it would take a second of processor time. */
async function bundled(name: string, control?: Control): Promise<string> {
  const outfile = join(folder, `${name}.mjs`);
  let changed = control === undefined;
  const mistake: Plugin = {
    name: "mistake",
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        if (control === undefined || path !== join(ROOT, control.file)) return undefined;
        const source = readFileSync(path, "utf8");
        changed = source.includes(control.text);
        return { contents: source.replace(control.text, control.mistaken), loader: "ts" };
      });
    },
  };
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
    plugins: [mistake],
  });
  expect(changed, `${control?.file} has no ${control?.text}: name the line that keeps from the mistake`).toBe(true);
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

/** The controls, by the line that is changed. */
const CONTROLS = new Map<string, readonly [Control, readonly Scene[]]>();
for (const scene of SCENES) {
  if (scene.control === undefined) continue;
  const name = `${scene.control.file}: ${scene.control.mistaken}`;
  CONTROLS.set(name, [scene.control, [...(CONTROLS.get(name)?.[1] ?? []), scene]]);
}

describe.runIf(DRIVERS.some(([name]) => name === "typescript")).each([...CONTROLS])("the control %s", (name, [control, scenes]) => {
  it("fails the scenes of its mistake", { timeout: 180_000 }, async () => {
    const pool = new Pool([process.execPath, await bundled(`control-${[...CONTROLS.keys()].indexOf(name)}`, control)]);
    try {
      const played = await Promise.all(scenes.map(async (scene) => ({ name: scene.name, wrong: (await pool.play(scene)).wrong })));
      expect(played.filter(({ wrong }) => wrong.length === 0).map((one) => one.name)).toEqual([]);
    } finally {
      await pool.end();
    }
  });
});
