/**
 * CPU of this process for one cycle: a key that nobody else wants is acquired and released, two conditional writes. The
 * bare AWS SDK, HTTP with a signature and nothing else, and this package on the table by both transports, and over HTTP.
 * CPU and not time: the engine and the service are processes of their own, on the same cores.
 */
import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { Agent } from "node:http";
import { createTable } from "../infra/local/create-table.js";
import { engineClient } from "../infra/local/engine-client.js";
import { startEngine } from "../infra/local/engine.js";
import { createLockClient as createTableClient } from "../lib/dynamodb.js";
import { createLockClient as createHttpClient } from "../lib/index.js";
import type { LockClient } from "../lib/index.js";
import { systemClock } from "../lib/core/time.js";
import { post } from "../lib/store/dynamo/http-sender.js";
import { signer } from "../lib/store/dynamo/signature.js";
import { updates } from "./bare-updates.js";
import { startService } from "./locks.js";
import { markdownTable, median } from "./table.js";

const TABLE_NAME = "holdfast";
const IN_FLIGHT = 16;
const ROUNDS = 7;
const CYCLES = 1000;
const WARM_UP_CYCLES = 2000;

/** A way to do a cycle on this key. */
interface Way {
  readonly title: string;
  readonly cycle: (key: string) => Promise<unknown>;
}

/** The table. @throws StartError when the engine or the service can't start. */
export async function transports(): Promise<string> {
  const engine = await startEngine({});
  const table = engineClient(engine.endpoint);
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });
  await createTable(table, TABLE_NAME);
  const service = await startService(engine);
  const locksBy = (transport: "auto" | "sdk"): LockClient =>
    createTableClient({ tableName: TABLE_NAME, client: engineClient(engine.endpoint), transport });
  const clients = [locksBy("auto"), locksBy("sdk"), createHttpClient({ url: `http://127.0.0.1:${service.port}` })] as const;
  const [builtIn, sdk, http] = clients.map((locks) => async (key: string) => (await locks.acquire(key)).release());
  const raw = rawUpdates(engine.endpoint, agent);
  try {
    return await compare([
      {
        title: "two conditional updates through the bare AWS SDK",
        async cycle(key) {
          for (const input of updates(key)) await table.send(new UpdateItemCommand(input));
        },
      },
      {
        title: "the same updates, signed, over node:http",
        async cycle(key) {
          for (const input of updates(key)) await raw(input);
        },
      },
      { title: "holdfast on the table, built-in transport", cycle: builtIn! },
      { title: 'holdfast on the table, transport: "sdk"', cycle: sdk! },
      { title: "holdfast over HTTP (this process alone)", cycle: http! },
    ]);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    agent.destroy();
    table.destroy();
    await service.stop();
    await engine.stop();
  }
}

async function compare(ways: readonly Way[]): Promise<string> {
  const figures = ways.map((way) => ({ ...way, cpuMs: [] as number[] }));
  for (const { cycle } of figures) await cpuMsOf(cycle, WARM_UP_CYCLES);
  // Interleaved, so that what else the machine does meets all alike.
  for (let round = 0; round < ROUNDS; round++) for (const { cycle, cpuMs } of figures) cpuMs.push(await cpuMsOf(cycle, CYCLES));
  const [bare] = figures;
  const ratio = ({ cpuMs }: { readonly cpuMs: readonly number[] }): number =>
    median(cpuMs.map((ms, round) => ms / (bare?.cpuMs[round] ?? ms)));
  return markdownTable([
    [`acquire + release, ${IN_FLIGHT} in flight`, "CPU a cycle", "from, to", "against the bare SDK"],
    ...figures.map((figure) => [
      figure.title,
      `${median(figure.cpuMs).toFixed(2)} ms`,
      `${Math.min(...figure.cpuMs).toFixed(2)}, ${Math.max(...figure.cpuMs).toFixed(2)}`,
      `${ratio(figure).toFixed(2)}×`,
    ]),
  ]);
}

let keys = 0;

async function cpuMsOf(cycle: Way["cycle"], cycles: number): Promise<number> {
  let left = cycles;
  const before = process.cpuUsage();
  const worker = async (): Promise<void> => {
    while (left-- > 0) await cycle(`ORDER_${++keys}`);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / cycles;
}

/** Sends an update as it is: the least that a request to DynamoDB costs over node:http. */
function rawUpdates(endpoint: string, agent: Agent): (input: UpdateItemCommandInput) => Promise<unknown> {
  const { hostname, port, host } = new URL(endpoint);
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const sign = signer(credentials, { host, path: "/", region: "us-east-1", service: "dynamodb" });
  return async (input) => {
    const body = JSON.stringify(input);
    const headers = sign("DynamoDB_20120810.UpdateItem", body, systemClock.wallMs());
    const bounds = { connectMs: 1000, answerMs: 10_000 };
    const { status, text } = await post(
      { protocol: "http:", hostname, port: Number(port), path: "/", agent },
      headers,
      body,
      bounds,
      systemClock,
    );
    if (status !== 200) throw new Error(text);
    return JSON.parse(text);
  };
}
