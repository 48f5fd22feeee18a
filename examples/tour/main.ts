/**
 * `npm run demo`: a tour of about two minutes. Six scenes with real processes, drawn as they happen and live in the console, and a small flash sale.
 * `--only NAME` plays one of them, `--help` prints the options. The exit status is 0 only if every scene proved what it says.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type LiveConsole, openLiveConsole } from "../../infra/local/live-console.js";
import { type Painter, painterOn } from "./painter.js";
import { type Scene, SCENES } from "./scenes.js";
import { openStage } from "./stage.js";

const SALE = fileURLToPath(new URL("../flash-sale/demo.ts", import.meta.url));
/** A sale whose end is told in a line each. */
const SMALL_SALE = ["--brief", "--buyers", "80", "--processes", "2", "--at-once", "10"];
const NEXT = "Next: npx holdfast dev · docs/start-here.md";
const NAMES = [...Object.keys(SCENES), "sale"];

const USAGE = `Usage: npm run demo [-- OPTIONS]

A tour of about two minutes: scenes with real processes, each of which says what it proved.

Options:
  --only NAME   play one scene: ${NAMES.join(", ")}
  -h, --help    print this

The sale takes options of its own, after dashes of their own:
  npm run demo -- --only sale -- --buyers 1000 --processes 4 --at-once 1000
`;

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help who watches.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

try {
  const options = { only: { type: "string" }, help: { type: "boolean", short: "h" } } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true, strict: true });
  const { only, help } = values;
  if (only !== undefined && !NAMES.includes(only)) throw new Error(`there is no scene ${JSON.stringify(only)}, only ${NAMES.join(", ")}`);
  if (positionals.length > 0 && only !== "sale") throw new Error(`${positionals[0]}: only the sale takes more options`);
  if (help) process.stdout.write(USAGE);
  else if (!(await tour(only === undefined ? NAMES : [only], positionals))) process.exitCode = 1;
} catch (error) {
  console.error(`demo: ${sentenceOf(error as Error)}`);
  process.exitCode = 1;
}

/** Returns what is wrong, in one sentence. Node adds a second one to an unknown option, about arguments that begin with a dash. */
function sentenceOf({ message }: Error): string {
  const [, option] = /^Unknown option '(.*?)'/.exec(message) ?? [];
  return option === undefined ? (message.split("\n", 1)[0] ?? "") : `unknown option ${option}: see npm run demo -- --help`;
}

async function tour(names: readonly string[], saleArgs: readonly string[]): Promise<boolean> {
  const painter = painterOn(process.stdout);
  const live = await openLiveConsole();
  const beganAtMs = performance.now();
  let proved = 0;
  try {
    painter.legend();
    painter.aside(`To watch it in a browser too, open ${live.url}`);
    for (const name of names) {
      const scene = SCENES[name];
      if (await (scene ? play(scene, painter, live) : sale(saleArgs, painter, live))) proved++;
    }
    const tookSec = Math.round((performance.now() - beganAtMs) / 1000);
    painter.title(`${proved} of ${names.length} proved in ${tookSec} s. ${NEXT}`);
    return proved === names.length;
  } finally {
    live.close();
  }
}

async function play(scene: Scene, painter: Painter, live: LiveConsole): Promise<boolean> {
  painter.title(scene.title);
  painter.aside(`${live.url}#/${scene.view}`);
  const stage = await openStage(live.log, scene.regions);
  const hide = live.show(stage.url.split(",").at(-1) ?? stage.url);
  const stop = painter.draw(stage);
  try {
    const proved = await scene.play(stage, (sentence) => painter.tell(sentence, stage));
    stop();
    proved.forEach((sentence) => painter.verdict(true, sentence));
    return true;
  } catch (error) {
    stop();
    painter.verdict(false, (error as Error).message);
    return false;
  } finally {
    await hide();
    await stage.close();
  }
}

async function sale(args: readonly string[], painter: Painter, live: LiveConsole): Promise<boolean> {
  painter.title("A flash sale: one purchase without a lock, with a lock, and by polling.");
  const options = args.length > 0 ? args : SMALL_SALE;
  const child = spawn(process.execPath, [...process.execArgv, SALE, ...options], { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  let hide: () => Promise<void> = () => Promise.resolve();
  child.on("message", (url) => (hide = live.show(url as string)));
  const [code] = (await once(child, "exit")) as [number | null];
  await hide();
  return code === 0;
}
