/**
 * A process of the tour: it takes the part that its first argument names, on one key, and tells the tour what happens to it. Orders come over
 * the channel to its parent; it ends with it.
 */
import { DynamoDBDocumentClient, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { engineClient } from "../../infra/local/engine-client.js";
import { type Lease, type LockClient, createLockClient, fencedWrite, LockError } from "../../lib/index.js";

/** The part of a process. */
export interface Part {
  readonly role: "holder" | "payer" | "candidate";
  readonly owner: string;
  readonly key: string;
  readonly leaseMs: number;
  /** The lock service, or several with commas, and the engine with the table of the orders. */
  readonly url: string;
  readonly endpoint: string;
  readonly tableName: string;
}

/** A message of a process to the tour. */
export type Told =
  | { readonly what: "ready" }
  | { readonly what: "waiting" }
  | { readonly what: "released" }
  | { readonly what: "lost" }
  | { readonly what: "holding"; readonly token: number }
  | { readonly what: "wrote"; readonly token: number }
  | { readonly what: "refused"; readonly token: number }
  | { readonly what: "paying"; readonly attempt: number; readonly checkpoint?: unknown }
  | { readonly what: "paid"; readonly receipt: string; readonly replayed: boolean }
  | { readonly what: "failed"; readonly why: string };

/** An order to a process. */
export type Order = "begin" | "write" | "release" | "finish";

const part = JSON.parse(process.argv[2] ?? "") as Part;
const { key, leaseMs, owner } = part;
const locks = createLockClient({ url: part.url.split(","), owner, closeOnSigterm: true });
const client = engineClient(part.endpoint);
const documents = DynamoDBDocumentClient.from(client);
const tell = (told: Told): void => void process.send?.(told);

let lease: Lease | undefined;
let finish = (): void => undefined;
/** Settles when the tour says that the work is done. */
const finished = new Promise<void>((resolve) => (finish = resolve));

const ROLES: Record<Part["role"], (locks: LockClient) => Promise<void>> = { holder: hold, payer: pay, candidate: campaign };
const ORDERS: Record<Order, () => Promise<void> | void> = {
  begin: () => ROLES[part.role](locks),
  write,
  release: async () => {
    await lease?.release();
    tell({ what: "released" });
  },
  finish: () => finish(),
};

process.on("disconnect", () => process.exit());
process.on("message", (order: Order) => {
  Promise.resolve(ORDERS[order]()).catch((error: unknown) => tell({ what: "failed", why: (error as Error).message }));
});
tell({ what: "ready" });

/** Waits for the key, and holds it until the order to release it. */
async function hold(): Promise<void> {
  tell({ what: "waiting" });
  const held = await locks.acquire(key, { leaseMs, waitMs: 60_000 });
  lease = held;
  held.signal.addEventListener("abort", () => held.state === "lost" && tell({ what: "lost" }));
  tell({ what: "holding", token: held.fencingToken });
}

/** Writes under the lease's token without asking whether the lease is still held, as a process would that just woke up. */
async function write(): Promise<void> {
  const token = lease!.fencingToken;
  const fence = fencedWrite(token);
  const UpdateExpression = `${fence.UpdateExpression}, writer = :owner`;
  const ExpressionAttributeValues = { ...fence.ExpressionAttributeValues, ":owner": owner };
  try {
    await documents.send(
      new UpdateCommand({ ...fence, TableName: part.tableName, Key: { id: key }, UpdateExpression, ExpressionAttributeValues }),
    );
    tell({ what: "wrote", token });
  } catch (error) {
    if ((error as Error).name !== "ConditionalCheckFailedException") throw error;
    tell({ what: "refused", token });
  }
}

/** Charges a card and sends the receipt, once for each key. The receipt is slow: it is sent when the tour says so. */
async function pay(): Promise<void> {
  tell({ what: "waiting" });
  const { value, replayed } = await locks.runOnce(key, { leaseMs, waitMs: 60_000 }, async (run) => {
    tell({ what: "paying", attempt: run.attempt, checkpoint: run.checkpoint });
    if (run.checkpoint !== "charged") {
      await charge();
      await run.saveCheckpoint("charged");
    }
    tell({ what: "holding", token: run.fencingToken });
    await finished;
    return `receipt of attempt ${run.attempt}`;
  });
  tell({ what: "paid", receipt: value, replayed });
}

/** Adds one to the charges of this key. */
async function charge(): Promise<void> {
  const update = { UpdateExpression: "ADD charges :one", ExpressionAttributeValues: { ":one": 1 } };
  await documents.send(new UpdateCommand({ TableName: part.tableName, Key: { id: key }, ...update }));
}

/** Campaigns, and leads until its process is told to end. */
async function campaign(): Promise<void> {
  tell({ what: "waiting" });
  await locks
    .elect(key, { leaseMs }, async (led) => {
      tell({ what: "holding", token: led.fencingToken });
      await new Promise((resolve) => led.signal.addEventListener("abort", resolve));
      tell({ what: "released" });
    })
    .catch((error: unknown) => {
      if (!(error instanceof LockError)) throw error; // The client was closed by SIGTERM.
    });
}
