/** `npm start` as a user runs it: in its own terminal, on a free port, until Ctrl-C. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { ROOT } from "../tidy/tree.js";

/** A service that was started by `npm start`. */
export interface NpmStart {
  /** The output until the service was ready. */
  readonly greeting: string;
  readonly url: string;
  /** The endpoint of its DynamoDB; `""` if this machine has none, and the records are in memory. */
  readonly engineEndpoint: string;
  /** The lines of JSON that it has printed since. */
  lines(): readonly string[];
  /** Sends the signal that the terminal sends, to npm and the shell in between too. Resolves when all of the processes are gone. */
  pressCtrlC(): Promise<{ readonly code: number | null; readonly stderr: string }>;
  /** Kills it in any state. */
  kill(): void;
}

/** The environment of a user who has set nothing but this. */
export function plainEnvironment(set: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = ["PATH", "HOME", "TMPDIR"].map((name) => [name, process.env[name]] as const);
  return { ...Object.fromEntries(inherited.filter(([, value]) => value !== undefined)), ...set };
}

/** Runs it. @throws Error if it exits instead of serving. */
export async function npmStart(): Promise<NpmStart> {
  const env = plainEnvironment({ PORT: "0", npm_config_update_notifier: "false" });
  const npm = spawn("npm", ["start"], { cwd: ROOT, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let greeting = "";
  let stderr = "";
  npm.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const closed = once(npm, "close").then(([code]) => code as number | null);
  const signalGroup = (name: NodeJS.Signals): void => void process.kill(-(npm.pid ?? 0), name);
  await new Promise<void>((resolve, reject) => {
    npm.stdout.setEncoding("utf8").on("data", (text: string) => {
      greeting += text;
      if (greeting.includes("Ctrl-C")) resolve();
    });
    void closed.then(() => reject(new Error(`npm start ended: ${greeting} ${stderr}`)));
  });
  const [, url = ""] = /^holdfast \S+ serves (\S+)$/m.exec(greeting) ?? [];
  const [, engineEndpoint = ""] = /^engine: .* at ([^\s,]+)/m.exec(greeting) ?? [];
  return {
    greeting,
    url,
    engineEndpoint,
    lines: () => greeting.split("\n").filter((line) => line.startsWith("{")),
    async pressCtrlC() {
      signalGroup("SIGINT");
      return { code: await closed, stderr };
    },
    kill() {
      if (npm.exitCode === null && npm.signalCode === null) signalGroup("SIGKILL");
    },
  };
}
