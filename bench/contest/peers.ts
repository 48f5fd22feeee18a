/**
 * Other lock libraries of npm, behind the benchmark's interface. They are packages of bench/peers and may be missing.
 * All poll at the same pace, hold leases of a minute and keep their connections, where they have a choice.
 */
import { DynamoDBDocument } from "@aws-sdk/lib-dynamodb";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { engineClient } from "../../infra/local/engine-client.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type Arena, type Contestant, type Entry, ONE_KEY, ONE_KEY_TABLE, PLAIN_TABLE } from "./arena.js";
import { versionOf } from "../report/report.js";

/** Installs the peers. */
export const INSTALL_PEERS = "npm ci --prefix bench/peers";

const load = createRequire(new URL("../peers/package.json", import.meta.url));
const LEASE_MS = 60_000;
const TRIES = 1_000_000;
const LOCAL = { region: "us-east-1", accessKeyId: "local", secretAccessKey: "local" } as const;

/** The peers by id. */
export const PEERS: Readonly<Record<string, Entry>> = {
  lockClient: { ...peer("dynamodb-lock-client", ", fail closed"), open: lockClient },
  deliveryHero: { ...peer("@deliveryhero/dynamodb-lock"), open: deliveryHero },
  mutex: { ...peer("dynamodb-mutex"), open: mutex },
  redlock: { ...peer("redlock", " on Redis"), open: redlock },
};

function peer(name: string, about = ""): Pick<Entry, "title" | "isInstalled"> {
  return { title: `${name} ${versionOf(name)}${about}`, isInstalled: () => isInstalled(name) };
}

/** True if this package of bench/peers is there. */
export function isInstalled(name: string): boolean {
  try {
    load.resolve(name);
    return true;
  } catch {
    return false;
  }
}

type Callback<Value> = (error: Error | null | undefined, value: Value) => void;

/** Its locks without a lease: those with one wait for the whole lease of a holder, also of one that has released. */
function lockClient({ endpoint, pollMs }: Arena): Contestant {
  interface Lock {
    release(done: Callback<undefined>): void;
  }
  const { FailClosed } = load("dynamodb-lock-client");
  const { DocumentClient } = load("aws-sdk").DynamoDB;
  const locks = new FailClosed({
    dynamodb: new DocumentClient({ ...LOCAL, endpoint }),
    lockTable: ONE_KEY_TABLE,
    partitionKey: ONE_KEY,
    acquirePeriodMs: pollMs,
    retryCount: TRIES,
  });
  return {
    async acquire(key) {
      const lock = await promisify((done: Callback<Lock>) => locks.acquireLock(key, done))();
      return promisify((done: Callback<undefined>) => lock.release(done));
    },
  };
}

function deliveryHero({ endpoint, pollMs }: Arena): Contestant {
  const { dynamoDBLockClientFactory } = load("@deliveryhero/dynamodb-lock");
  const locks = dynamoDBLockClientFactory(DynamoDBDocument.from(engineClient(endpoint)), {
    tableName: PLAIN_TABLE,
    partitionKey: TABLE.partitionKey,
    sortKey: TABLE.sortKey,
  });
  const options = { leaseDurationInMs: LEASE_MS, prolongLeaseEnabled: false, trustLocalTime: true, waitDurationInMs: pollMs };
  return {
    async acquire(key) {
      const lock = await locks.lock("delivery-hero", key, options);
      return () => locks.releaseLock(lock);
    },
  };
}

function mutex({ endpoint, pollMs }: Arena): Contestant {
  console.log = () => undefined; // It prints two lines a lock.
  const Mutex = load("dynamodb-mutex");
  const locks = new Mutex({
    ...LOCAL,
    endpoint,
    tableName: ONE_KEY_TABLE,
    hashKey: ONE_KEY,
    lockTimeout: LEASE_MS,
    lockRetryInterval: pollMs,
  });
  return {
    async acquire(key) {
      const unlock = await promisify((done: Callback<(done: () => void) => void>) => locks.lock(key, TRIES, done))();
      return () => new Promise<void>((resolve) => unlock(resolve));
    },
  };
}

function redlock({ redisPort, pollMs }: Arena): Contestant {
  if (redisPort === undefined) throw new Error("there is no redis-server on the path");
  const { Redis } = load("ioredis");
  const Redlock = load("redlock");
  const redis = new Redis(redisPort, "127.0.0.1");
  let requests = 0;
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (...command: readonly unknown[]) => {
    requests++;
    return send(...command);
  };
  const locks = new Redlock([redis], { retryCount: -1, retryDelay: pollMs, retryJitter: pollMs / 2 });
  return {
    async acquire(key) {
      const lock = await locks.lock(key, LEASE_MS);
      return () => locks.unlock(lock);
    },
    requests: () => requests,
  };
}
