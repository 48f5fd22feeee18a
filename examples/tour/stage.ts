/** The stage of a scene: an engine, the lock service and the processes that want one key. All of it ends with the stage. */
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { engineClient } from "../../infra/local/engine-client.js";
import { REGION_PATH } from "../../infra/local/local-regions.js";
import type { LiveConsole } from "../../infra/local/live-console.js";
import { startEngine } from "../../infra/local/engine.js";
import type { Order, Part, Told } from "./actor.js";
import type { Lane, State } from "./lanes.js";

const ACTOR = fileURLToPath(new URL("actor.ts", import.meta.url));
const SERVICE = fileURLToPath(new URL("service.ts", import.meta.url));
const TABLE = "tour-orders";
/** The time after which a scene that hangs fails, in ms. */
const PATIENCE_MS = 60_000;

/** A process on the stage. */
export interface Actor {
  readonly lane: Lane;
  readonly process: ChildProcess;
  order(order: Order): void;
  /** Waits until it tells `what`, and returns that. What it told before counts too, and is not waited for again. */
  told<What extends Told["what"]>(what: What): Promise<Extract<Told, { what: What }>>;
  /** True if it told `what`, and nobody waited for it. */
  hasTold(what: Told["what"]): boolean;
  /** Changes what its lane shows. */
  is(state: State, said?: string): void;
}

/** The stage. */
export interface Stage {
  /** The URL of the lock service; of one in each Region, with commas. */
  readonly url: string;
  readonly lanes: readonly Lane[];
  /** The time since the scene began, in ms. */
  nowMs(): number;
  /** Starts a process for each name. The scene's time begins when all are ready. */
  enter(part: Pick<Part, "role" | "key" | "leaseMs">, ...names: readonly string[]): Promise<readonly Actor[]>;
  killService(): Promise<void>;
  startService(): Promise<void>;
  /** Cuts a Region off, or opens it again. */
  cutOff(region: string, state: "silent" | "open"): Promise<void>;
  /** The order's item, which the processes write. */
  item(key: string): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

/** Opens the stage. `log` receives the lines of the service's log. @throws StartError if the engine or the service can't start */
export async function openStage(log: LiveConsole["log"], regions?: readonly string[]): Promise<Stage> {
  const engine = await startEngine({});
  const client = engineClient(engine.endpoint);
  const address = { endpoint: engine.endpoint, tableName: "tour-locks" };
  const actors: Actor[] = [];
  let service = await serve({ ...address, port: 0, regions }, log);
  const { url } = service;
  let beganAtMs = performance.now();
  const nowMs = (): number => performance.now() - beganAtMs;
  const KeySchema = [{ AttributeName: "id", KeyType: "HASH" as const }];
  const AttributeDefinitions = [{ AttributeName: "id", AttributeType: "S" as const }];
  await client.send(new CreateTableCommand({ TableName: TABLE, BillingMode: "PAY_PER_REQUEST", AttributeDefinitions, KeySchema }));

  return {
    url,
    nowMs,
    get lanes() {
      return actors.map(({ lane }) => lane);
    },
    async enter(part, ...names) {
      const roles = names.map((owner) => ({ ...part, owner, url, endpoint: engine.endpoint, tableName: TABLE }));
      actors.push(...roles.map((role) => actorOf(fork(ACTOR, [JSON.stringify(role)]), role.owner, nowMs)));
      await Promise.all(actors.map((actor) => actor.told("ready")));
      beganAtMs = performance.now();
      return actors;
    },
    async killService() {
      service.process.kill("SIGKILL");
      await once(service.process, "exit");
    },
    async startService() {
      service = await serve({ ...address, port: Number(new URL(url).port) }, log);
    },
    async cutOff(region, state) {
      const at = url.split(",")[regions?.indexOf(region) ?? 0] ?? url;
      await fetch(`${at}${REGION_PATH}?state=${state}`, { method: "POST" });
    },
    async item(key) {
      const { Item = {} } = await DynamoDBDocumentClient.from(client).send(
        new GetCommand({ TableName: TABLE, Key: { id: key }, ConsistentRead: true }),
      );
      return Item;
    },
    async close() {
      for (const { process } of [...actors, service]) process.kill("SIGKILL");
      client.destroy();
      await engine.stop();
    },
  };
}

async function serve(address: object, log: LiveConsole["log"]): Promise<{ readonly process: ChildProcess; readonly url: string }> {
  const process = fork(SERVICE, [JSON.stringify(address)]);
  const [url] = (await Promise.race([once(process, "message"), endOf(process)])) as [string];
  process.on("message", log);
  return { process, url };
}

async function endOf(process: ChildProcess): Promise<never> {
  await once(process, "exit");
  throw new Error("the lock service did not start");
}

function actorOf(process: ChildProcess, name: string, nowMs: () => number): Actor {
  const heard: Told[] = [];
  let listen = (): void => undefined;
  const changes: { atMs: number; state: State }[] = [];
  let said = "";
  const is: Actor["is"] = (state, text = said) => {
    said = text;
    if (changes.at(-1)?.state !== state) changes.push({ atMs: nowMs(), state });
  };
  process.on("message", (told: Told) => {
    heard.push(told);
    show(told, is);
    listen();
  });
  process.on("exit", (_code, signal) => signal === "SIGKILL" && is("dead", "killed"));
  return {
    process,
    is,
    lane: {
      name,
      changes,
      get said() {
        return said;
      },
    },
    order: (order) => void process.send(order),
    hasTold: (what) => heard.some((told) => told.what === what),
    async told<What extends Told["what"]>(what: What) {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      for (;;) {
        const at = heard.findIndex((told) => told.what === what);
        if (at >= 0) return heard.splice(at, 1)[0] as Extract<Told, { what: What }>;
        const failed = heard.find((told) => told.what === "failed");
        if (failed) throw new Error(`${name}: ${failed.why}`);
        await new Promise<void>((resolve, reject) => {
          listen = resolve;
          signal.addEventListener("abort", () => reject(new Error(`${name} was never ${what}`)), { once: true });
        });
      }
    },
  };
}

/** Changes the lane by what the process told. */
function show(told: Told, is: Actor["is"]): void {
  if (told.what === "waiting") is("waiting", "waits");
  if (told.what === "holding") is("holding", `holds, token ${shortToken(told.token)}`);
  if (told.what === "released") is("away", "released");
  if (told.what === "lost") is("away", "lost its lease, and knows");
  if (told.what === "wrote") is("holding", `wrote with token ${shortToken(told.token)}`);
  if (told.what === "refused") is("away", `refused: token ${shortToken(told.token)}`);
  if (told.what === "paid") is("away", told.replayed ? `same ${told.receipt}` : told.receipt);
}

/** The end of a token, which is what changes from grant to grant: all begin with the time. */
function shortToken(token: number): string {
  return `…${String(token).slice(-5)}`;
}
