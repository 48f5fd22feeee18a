/**
 * The contestants: ways to lock a key, behind one interface. Each runs in a process of its own, which opens it by its
 * id. The peers are in peers.ts.
 */
import { type UpdateItemCommandInput, ConditionalCheckFailedException, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { engineClient, engineLocation } from "../../infra/local/engine-client.js";
import { systemClock } from "../../lib/core/time.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient as createHttpClient } from "../../lib/index.js";
import { type Arena, type Contestant, type Entry, BASE_ID, LOCKS_TABLE, PLAIN_TABLE } from "./arena.js";
import { PEERS } from "./peers.js";
import { acquisition, surrender } from "./plain-lock.js";
import { type Poster, fetchPoster, poster } from "./poster.js";
import { versionOf } from "../report/report.js";

/** The waiting time of callers that never give up, in ms. */
const WAIT_MS = 600_000;
/** Stands for the key in a request that is sent again for other keys. */
const ANY_KEY = "ANY_KEY_OF_THE_BENCHMARK";

/** The contestants by id. */
export const ENTRIES: Readonly<Record<string, Entry>> = {
  [BASE_ID]: { title: `bare AWS SDK ${versionOf("@aws-sdk/client-dynamodb")}`, open: bareSdk },
  http: { title: "raw HTTP, the same updates", open: ({ endpoint, pollMs }) => plain(overHttp(poster(endpoint, "UpdateItem")), pollMs) },
  fetch: {
    title: "the global `fetch`, the same updates",
    isForCyclesOnly: true,
    open: ({ endpoint, pollMs }) => plain(overHttp(fetchPoster(endpoint, "UpdateItem")), pollMs),
  },
  replay: { title: "raw HTTP, holdfast's updates", isForCyclesOnly: true, open: replay },
  table: {
    title: "**holdfast, table**",
    open: ({ endpoint }) => holdfast(createTableClient({ tableName: LOCKS_TABLE, ...engineLocation(endpoint) })),
  },
  sdkTransport: {
    title: "**holdfast, table, with a client**",
    isForCyclesOnly: true,
    open: ({ endpoint }) => holdfast(createTableClient({ tableName: LOCKS_TABLE, client: engineClient(endpoint) })),
  },
  service: { title: "**holdfast, HTTP**", open: ({ url }) => holdfast(createHttpClient({ url })) },
  ...PEERS,
};

function holdfast(locks: LockClient): Contestant {
  return {
    async acquire(key) {
      const lease = await locks.acquire(key, { waitMs: WAIT_MS });
      return () => lease.release();
    },
  };
}

/** Sends an update. Returns false if its condition refused it. */
type Send = (input: UpdateItemCommandInput) => Promise<boolean>;

function bareSdk({ endpoint, pollMs }: Arena): Contestant {
  const client = engineClient(endpoint);
  return plain(async (input) => {
    try {
      await client.send(new UpdateItemCommand(input));
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  }, pollMs);
}

/** Waits by asking again. */
function plain(send: Send, pollMs: number): Contestant {
  return {
    async acquire(key) {
      const lock = { tableName: PLAIN_TABLE, key, owner: randomUUID() };
      while (!(await send(acquisition(lock, systemClock.wallMs())))) await delay(pollMs * (0.5 + randomInt(1000) / 1000));
      return () => send(surrender(lock));
    },
  };
}

function overHttp(send: Poster): Send {
  return async (input) => {
    const { status, text } = await send(JSON.stringify(input));
    const { __type } = JSON.parse(text) as { readonly __type?: string };
    if (status !== 200 && !__type?.endsWith("#ConditionalCheckFailedException")) throw new Error(text);
    return status === 200;
  };
}

/** Records the two updates of one cycle of holdfast and sends them again, with another key each time. */
async function replay({ endpoint }: Arena): Promise<Contestant> {
  const client = engineClient(endpoint);
  const bodies: string[] = [];
  client.middlewareStack.add(
    (next) => (args) => {
      bodies.push(new TextDecoder().decode((args.request as { readonly body: Uint8Array }).body));
      return next(args);
    },
    { step: "finalizeRequest" },
  );
  const locks = createTableClient({ tableName: LOCKS_TABLE, client });
  await (await locks.acquire(ANY_KEY)).release();
  await locks.close();
  const [acquire, release] = bodies.slice(-2).map((body) => body.split(ANY_KEY));
  const send = poster(endpoint, "UpdateItem");
  const ask = async (body: readonly string[] | undefined, key: string): Promise<void> => {
    const { status, text } = await send(body!.join(key));
    if (status !== 200) throw new Error(text);
    JSON.parse(text);
  };
  return {
    async acquire(key) {
      await ask(acquire, key);
      return () => ask(release, key);
    },
  };
}
