/** The simulation as one module, with a bug patched into the production source on request. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type BuildContext, type Plugin, context } from "esbuild";
import { type Edit, editedSources } from "../support/edited-sources.js";
import type { Bug } from "./bugs/bug.js";
import { BUGS } from "./bugs/bugs.js";
import type { simulate } from "./history.js";
import { WITHOUT } from "./forms.js";
import { OPTIMISERS, STORM, WRITES_FIRST } from "./optimisers.js";
import type * as Bundled from "./worker.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Below node_modules, so that vitest imports a bundle as it is: to transform it takes longer than to make it. */
const CACHE = path.join(ROOT, "node_modules/.cache");
/** The bundle's replacement for the AWS SDK. */
const SDK = path.join(ROOT, "test/simulation/dynamo/sdk-stand-in.ts");
/** The bundle's replacement for the storage that tracks call chains. */
const CHAINS = path.join(ROOT, "test/simulation/no-chains.ts");

/** Returns the bug with that name. @throws Error listing the names if there is no such bug. */
export function bugNamed(name: string): Bug {
  const bug = BUGS.find((known) => known.name === name);
  if (!bug) throw new Error(`there is no bug ${JSON.stringify(name)}; these are: ${BUGS.map((known) => known.name).join(", ")}`);
  return bug;
}

/** Bundles repeatedly, and parses again only the files that changed. */
class Bundler {
  #context: Promise<BuildContext> | undefined;
  #bug: Bug | undefined;
  #latest: Promise<unknown> = Promise.resolve();

  /** Returns the text of the bundle, with this bug patched in. */
  bundle(bug: Bug | undefined): Promise<string> {
    const bundled = this.#latest.then(async () => {
      this.#bug = bug;
      const built = await (await (this.#context ??= this.#begin())).rebuild();
      return built.outputFiles?.[0]?.text ?? "";
    });
    this.#latest = bundled.catch(() => undefined);
    return bundled;
  }

  /** Ends esbuild's child process. Otherwise the context would keep this process alive. */
  async end(): Promise<void> {
    await this.#latest;
    await (await this.#context)?.dispose();
    this.#context = undefined;
  }

  #begin(): Promise<BuildContext> {
    return context({
      entryPoints: [path.join(ROOT, "test/simulation/worker.ts")],
      write: false,
      logLevel: "silent",
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      alias: { "@aws-sdk/client-dynamodb": SDK, "@aws-sdk/lib-dynamodb": SDK },
      plugins: [writtenIn(() => this.#bug), WITHOUT_CHAINS],
    });
  }
}

const WITHOUT_CHAINS: Plugin = {
  name: "without-chains",
  setup(build) {
    build.onResolve({ filter: /\/chain-storage\.js$/ }, () => ({ path: CHAINS }));
  },
};

const bundler = new Bundler();

/** Lets a process that has bundled exit. */
export function endBundling(): Promise<void> {
  return bundler.end();
}

/** Writes the bundle to a file. Returns its URL and a function that removes it. */
export async function bundleSimulation(bug: Bug | undefined): Promise<{ readonly url: string; remove(): Promise<void> }> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(path.join(CACHE, "simulation-"));
  const file = path.join(folder, "history.mjs");
  await writeFile(file, await bundler.bundle(bug));
  return { url: pathToFileURL(file).href, remove: () => rm(folder, { recursive: true }) };
}

/** Loads the production code, with the bug if one is given, ready to simulate. */
export async function loadSimulation(bug: Bug | undefined): Promise<typeof simulate> {
  return (await loadBundle(bug)).simulate;
}

/** Loads everything that the bundle exports. */
export async function loadBundle(bug: Bug | undefined): Promise<typeof Bundled> {
  const { url, remove } = await bundleSimulation(bug);
  try {
    return (await import(url)) as typeof Bundled;
  } finally {
    await remove();
  }
}

/** Patches the current bug into its files. */
function writtenIn(bugNow: () => Bug | undefined): Plugin {
  const editsOf = ({ edits, file }: Bug): readonly Edit[] => edits.map(([find, replace, other = file]) => [find, replace, other]);
  const files = [...BUGS, ...OPTIMISERS, ...WITHOUT, STORM, WRITES_FIRST].flatMap(editsOf).map(([, , file]) => file);
  return editedSources(files, () => {
    const bug = bugNow();
    return bug && { name: bug.name, edits: editsOf(bug) };
  });
}
