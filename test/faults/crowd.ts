/** Several processes that want one key, and checks of their holds. */
import { startChild } from "../support/child.js";
import type { FreshTable } from "../support/engine.js";
import type { ContenderOrder, Hold } from "./contender.js";

/** The outcome of a crowd. */
export interface Crowd {
  /** In the order of their tokens. */
  readonly holds: readonly Hold[];
  /** The codes of the errors that callers met. */
  readonly failed: readonly string[];
  /** The log's events, each with its token. */
  readonly lines: readonly (readonly [event: string, fencingToken: number])[];
}

/** Enough for a process to load and connect all its clients, two processes at a time, with a reserve. */
const START_EACH_MS = 700;

/** Starts `processes` contenders for the key, which all begin at once. */
export async function send(
  processes: number,
  table: FreshTable,
  order: Omit<ContenderOrder, "startAtMs">,
  opened: () => void = () => undefined,
): Promise<Crowd> {
  const startAtMs = Date.now() + 2000 + START_EACH_MS * processes;
  const children = Array.from({ length: processes }, () => startContender(table, { ...order, startAtMs }));
  try {
    await Promise.all(children.map((child) => child.reported("ready")));
    opened();
    const done = await Promise.all(children.map((child) => child.reported("done")));
    const holds = done.flatMap((one) => one.holds as Hold[]).sort((a, b) => a.fencingToken - b.fencingToken);
    const lines = done.flatMap((one) => one.lines as Crowd["lines"]).sort(([, a], [, b]) => a - b);
    return { holds, failed: done.flatMap((one) => one.failed as string[]), lines };
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

/** Starts one contender, directly on the table. */
export function startContender({ endpoint, tableName }: FreshTable, order: ContenderOrder) {
  return startChild("contender.ts", import.meta.url, order, {
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    HOLDFAST_TABLE: tableName,
  });
}

/** Counts the pairs of holds in which the second was granted before the first had ended. */
export function overlapping(holds: readonly Hold[]): number {
  return holds.slice(1).filter((hold, index) => hold.grantedAtMs < (holds[index]?.releasedAtMs ?? 0)).length;
}

/** Counts the pairs in which one was in the queue before the other asked, and was granted after it. */
export function overtaken(holds: readonly Hold[]): number {
  return holds.reduce(
    (count, { queuedAtMs = Infinity }, at) => count + holds.slice(0, at).filter(({ askedAtMs }) => askedAtMs > queuedAtMs).length,
    0,
  );
}
