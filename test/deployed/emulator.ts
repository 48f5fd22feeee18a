/**
 * The emulator as a process: MiniStack with the rows of emulator.py, in .engine/ministack. It checks signatures, and decides by IAM policies.
 * Its data are in memory, and end with it.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Everything of the emulator is in it, and nothing else is. */
const DIRECTORY = here("../../.engine/ministack");
/** Made anew by each start. `npm run try` and `npm run deployed` may run beside each other, so they have folders of their own. */
export const RUN_DIRECTORY = join(DIRECTORY, process.env["EMULATOR_FOLDER"] ?? "run");
const PYTHON = join(DIRECTORY, "venv/bin/python");
const REQUIREMENTS = here("requirements.txt");
const OFF_DIRECTORY = join(RUN_DIRECTORY, "off");
const START_MS = 60_000;

/** The account's own credentials and Region, for the CDK and for what an administrator does. */
export const ROOT = { accessKeyId: "test", secretAccessKey: "test" };
export const REGION = "us-east-1";
export const ACCOUNT = "000000000000";

/** A running emulator. */
export interface Emulator {
  readonly endpoint: string;
  /** The variables of a process that takes it for AWS. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Installs the pinned packages, unless they are installed. @throws Error saying what is missing */
export async function install(): Promise<void> {
  const installed = join(DIRECTORY, "installed.txt");
  const wanted = readFileSync(REQUIREMENTS, "utf8");
  if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return;
  mkdirSync(DIRECTORY, { recursive: true });
  const needs = "the emulator needs Python 3.10 or newer with venv, and PyPI or a mirror of it";
  await run("python3", ["-m", "venv", "--clear", join(DIRECTORY, "venv")]).catch((cause: unknown) => {
    throw new Error(`${needs}: there is no python3 that makes a venv`, { cause });
  });
  await run(PYTHON, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS]).catch((cause: unknown) => {
    throw new Error(`${needs}: pip could not install ${wanted.trim().replace("\n", " and ")}`, { cause });
  });
  writeFileSync(installed, wanted);
}

/** The variables of a process that takes the emulator at an address for AWS. */
export function envOf(endpoint: string): Emulator["env"] {
  return {
    AWS_ENDPOINT_URL: endpoint,
    ...{ AWS_ACCESS_KEY_ID: ROOT.accessKeyId, AWS_SECRET_ACCESS_KEY: ROOT.secretAccessKey },
    ...{ AWS_REGION: REGION, AWS_DEFAULT_REGION: REGION, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
  };
}

/** Starts an emulator on a port, 0 for any. @throws Error if it can't be installed or doesn't answer */
export async function startEmulator(port = 0): Promise<Emulator> {
  await install();
  // First: if it is in use, an emulator that runs keeps its files.
  const chosen = await freePort(port);
  rmSync(RUN_DIRECTORY, { recursive: true, force: true });
  mkdirSync(RUN_DIRECTORY, { recursive: true });
  // The code of functions is below it, and without this would be taken for modules of this package.
  writeFileSync(join(RUN_DIRECTORY, "package.json"), "{}");
  const endpoint = `http://127.0.0.1:${chosen}`;
  const log = openSync(join(RUN_DIRECTORY, "log.txt"), "w");
  const child = spawn(PYTHON, [here("emulator.py")], {
    // The functions' processes inherit them, so there are no others.
    env: {
      ...{ PATH: process.env["PATH"], HOME: process.env["HOME"] },
      ...{ AWS_ACCESS_KEY_ID: ROOT.accessKeyId, AWS_SECRET_ACCESS_KEY: ROOT.secretAccessKey },
      ...{ AUTH: "true", GATEWAY_PORT: String(chosen), BIND_HOST: "127.0.0.1", MINISTACK_HOST: "localhost", IOT_MTLS_ENABLED: "0" },
      // An idle environment keeps three descriptors open, and a process may have 1,024 of them.
      LAMBDA_WARM_TTL_SECONDS: "10",
      ...{ TMPDIR: RUN_DIRECTORY, STATE_DIR: join(RUN_DIRECTORY, "state"), SHIM_OFF: OFF_DIRECTORY },
    },
    stdio: ["ignore", log, log],
    // A group of its own, with the functions' processes: they end together.
    detached: true,
  });
  const emulator = { endpoint, env: envOf(endpoint), stop: () => stop(child) };
  process.once("exit", () => void kill(child));
  await answers(child, endpoint).catch(async (error: unknown) => {
    await emulator.stop();
    throw error;
  });
  return emulator;
}

async function answers(child: ChildProcess, endpoint: string): Promise<void> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const response = await fetch(`${endpoint}/_ministack/health`).catch(() => undefined);
    if (response?.ok) return;
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`the emulator doesn't answer: see ${RUN_DIRECTORY}/log.txt`);
    await delay(100);
  }
}

function kill({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null && process.kill(-pid, "SIGKILL");
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  if (kill(child)) await ended;
}

/** @throws Error if that port is in use */
async function freePort(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, "127.0.0.1");
  await once(server, "listening").catch((cause: unknown) => {
    throw new Error(`port ${wanted} is in use: by an emulator that runs already, or by another program. Set PORT to another`, { cause });
  });
  const { port } = server.address() as AddressInfo;
  await promisify(server.close.bind(server))();
  return port;
}

/** Runs `work` while a row of emulator.py is switched off. Tests run beside each other, so each row has a file of its own. */
export async function without<T>(row: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(OFF_DIRECTORY, { recursive: true });
  const file = join(OFF_DIRECTORY, row);
  writeFileSync(file, "");
  try {
    return await work();
  } finally {
    rmSync(file);
  }
}
