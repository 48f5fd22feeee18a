/**
 * A report in pages, read by many readers and sometimes rebuilt, page by page. Readers share the key and a rebuild has
 * it exclusively, so no reader sees half of a rebuild. A reader that finds the report stale becomes its writer.
 */
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { type Lease, type LockClient, fencedWrite, key, LockError } from "../../lib/index.js";
import { play } from "./stage.js";
import { type Table, read, valueOf, write } from "./table.js";

/** The dependencies of reading and building reports. */
export interface Desk {
  readonly locks: Pick<LockClient, "readWrite">;
  readonly table: Table;
  /** The number of orders. A report covers a number of orders. */
  readonly orders: () => Promise<number>;
  /** Builds a page. This is slow. */
  readonly build: (page: string, orders: number) => Promise<number>;
}

/** The pages of a report. */
export const PAGES: readonly string[] = ["sales", "refunds", "stock"];

/** Returns the current report, page by page, and rebuilds it first if it is stale. `return await` finishes the reads before the release. */
export async function readReport(desk: Desk, report: string): Promise<readonly unknown[]> {
  for (;;) {
    await using lease = await desk.locks.readWrite(key("REPORT", report)).read.acquire();
    if ((await valueOf(desk.table, report)) === (await desk.orders())) return await pagesOf(desk.table, report);
    try {
      // Waits until the other readers are gone. Nobody wrote since the read above,
      // so no second read.
      await lease.upgrade();
    } catch (error) {
      // Another reader asked first: make way for it.
      if (error instanceof LockError && error.code === "upgrade-conflict") continue;
      throw error;
    }
    await rebuild(desk, report, lease);
    await lease.downgrade();
    return await pagesOf(desk.table, report);
  }
}

/** Rebuilds the report when nobody is reading it. */
export async function rebuildReport(desk: Desk, report: string): Promise<void> {
  await desk.locks.readWrite(key("REPORT", report)).write.withLock((lease) => rebuild(desk, report, lease));
}

/** Until the rebuild is done, the report has no number of orders and so is stale: a rebuild that died is started again. */
async function rebuild({ table, orders, build }: Desk, report: string, { fencingToken }: Lease): Promise<void> {
  const fence = fencedWrite(fencingToken); // The signature below was for the old content.
  const UpdateExpression = `${fence.UpdateExpression} REMOVE #value, signedBy`;
  const ExpressionAttributeNames = { ...fence.ExpressionAttributeNames, "#value": "value" };
  const what = { TableName: table.TableName, Key: { id: report } };
  await table.documents.send(new UpdateCommand({ ...what, ...fence, UpdateExpression, ExpressionAttributeNames }));
  const upTo = await orders();
  for (const page of PAGES) await write(table, `${report} ${page}`, await build(page, upTo), fencingToken);
  await write(table, report, upTo, fencingToken);
}

/** Signs what a reader read. Readers share the key and write concurrently, so the condition compares the last writer's token. */
export async function signReport(table: Table, report: string, reader: string, lease: Pick<Lease, "fenceFloor">): Promise<void> {
  const fence = fencedWrite(lease.fenceFloor);
  await table.documents.send(
    new UpdateCommand({
      ...fence,
      TableName: table.TableName,
      Key: { id: report },
      UpdateExpression: `${fence.UpdateExpression} ADD signedBy :reader`,
      ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":reader": new Set([reader]) },
    }),
  );
}

function pagesOf(table: Table, report: string): Promise<readonly unknown[]> {
  return Promise.all(PAGES.map((page) => valueOf(table, `${report} ${page}`)));
}

await play(import.meta.url, async ({ join, table }) => {
  let orders = 12;
  let built = 0;
  const build = (_page: string, upTo: number): Promise<number> => (built++, Promise.resolve(upTo));
  const desk = (): Desk => ({ locks: join(), table, orders: () => Promise.resolve(orders), build });
  await rebuildReport(desk(), "monthly");
  orders = 13;
  const seen = await Promise.all([1, 2, 3].map(() => readReport(desk(), "monthly")));
  console.log(`three readers of a stale report saw: ${seen.map((pages) => pages.join(" ")).join(", ")}`);
  console.log(`pages built: ${built}`);

  const { read: reading } = join().readWrite(key("REPORT", "monthly"));
  await using ann = await reading.acquire();
  await using bob = await reading.acquire();
  await signReport(table, "monthly", "bob", bob);
  await signReport(table, "monthly", "ann", ann);
  console.log("signed by:", [...((await read(table, "monthly"))?.["signedBy"] as Set<string>)].toSorted().join(", "));
});
