/**
 * `npm run try`: this repository's stack, deployed into an emulator of AWS on this machine until Ctrl-C. `PORT` is the emulator's port. A file
 * has the variables of a shell that uses it.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const DEFAULT_PORT = "4566";
const say = (line: string): void => console.log(line);
const fail = (why: string): never => {
  console.error(`try: ${why}`);
  process.exit(1);
};

const { PORT: port = DEFAULT_PORT } = process.env;
if (!/^[1-9]\d*$/.test(port) || Number(port) > 65_535) fail(`PORT=${port} is not a port: it may be 1 to 65535`);
// emulator.js reads it when it is loaded. The emulator of another port has files of its own.
if (port !== DEFAULT_PORT) process.env["EMULATOR_FOLDER"] = `run-${port}`;
const { REGION, RUN_DIRECTORY, startEmulator, ACCOUNT } = await import("./emulator.js");
const { bundle, cdk, deploy } = await import("./setup.js");

say("Starting the emulator");
const emulator = await startEmulator(Number(port)).catch((error: unknown) => fail((error as Error).message));
const end = (): void => void emulator.stop().then(() => process.exit());
process.on("SIGINT", end).on("SIGTERM", end).on("SIGHUP", end);
say("Bootstrapping the account, and deploying the stack holdfast-dev");
await bundle();
await cdk(emulator.env, "bootstrap", `aws://${ACCOUNT}/${REGION}`, "--app", "");
const { "holdfast-dev": outputs = {} } = await deploy(emulator.env, "infra/app.ts", ["--all"]);
const variables = { ...emulator.env, HOLDFAST_URL: outputs["Url"], HOLDFAST_LOG_GROUP: outputs["LogGroupName"] };
const file = join(RUN_DIRECTORY, "env.sh");
/** Variables that a shell may have set, which lead elsewhere or don't go with these. */
const OTHERS = ["AWS_PROFILE", "AWS_SESSION_TOKEN", "HOLDFAST_TABLE", "HOLDFAST_NAMESPACE", "HOLDFAST_BEARER_TOKEN"];
const unset = `unset ${OTHERS.join(" ")}\n`;
writeFileSync(
  file,
  unset +
    Object.entries(variables)
      .map(([name, value]) => `export ${name}=${value}\n`)
      .join(""),
);
say(`The API is at ${outputs["Url"]}. In another shell:

  . ${file}
  npx holdfast --sign ls
  npx holdfast --sign ui

Ctrl-C ends it all, and forgets it. Close the other shell then: its variables lead here.`);
