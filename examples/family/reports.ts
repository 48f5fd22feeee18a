/**
 * A report in pages, read by many at once and rebuilt now and then, page by page. Readers share the key, a rebuild
 * has it alone: no read sees half of a rebuild. A reader that finds the report stale becomes its writer.
 */
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { Lease, LockClient } from "../../lib/index.js";
import { fencedWrite, key, LockError } from "../../lib/index.js";
import { play } from "./stage.js";
import type { Table } from "./table.js";
import { read, valueOf, write } from "./table.js";

/** Where reports are read and built. */
export interface Desk {
  readonly locks: Pick<LockClient, "readWrite">;
  readonly table: Table;
  /** How many orders there are: a report is of so many. */
  readonly orders: () => Promise<number>;
  /** Makes a page; takes its time. */
  readonly build: (page: string, orders: number) => Promise<number>;
}

/** The pages of a report. */
export const PAGES: readonly string[] = ["sales", "refunds", "stock"];

/** The report as it is now, page by page; rebuilt first if it is stale. `return await`: what is read is read before the release. */
export async function readReport(desk: Desk, report: string): Promise<readonly unknown[]> {
  for (;;) {
    await using lease = await desk.locks.readWrite(key("REPORT", report)).read.acquire();
    if ((await valueOf(desk.table, report)) === (await desk.orders())) return await pagesOf(desk.table, report);
    try {
      await lease.upgrade(); // Once the other readers are gone. Nobody wrote since the look: nothing to look at again.
    } catch (error) {
      if (error instanceof LockError && error.code === "upgrade-conflict") continue; // Another reader asked first: out of its way.
      throw error;
    }
    await rebuild(desk, report, lease);
    await lease.downgrade();
    return await pagesOf(desk.table, report);
  }
}

/** Rebuilds the report, when no reader is at it. */
export async function rebuildReport(desk: Desk, report: string): Promise<void> {
  await desk.locks.readWrite(key("REPORT", report)).write.withLock((lease) => rebuild(desk, report, lease));
}

/** Until it is done the report is of no number of orders, and so stale: a rebuild that died is begun anew. */
async function rebuild({ table, orders, build }: Desk, report: string, { fencingToken }: Lease): Promise<void> {
  const fence = fencedWrite(fencingToken); // Who signed what was there before didn't sign this.
  const UpdateExpression = `${fence.UpdateExpression} REMOVE #value, signedBy`;
  const ExpressionAttributeNames = { ...fence.ExpressionAttributeNames, "#value": "value" };
  const what = { TableName: table.TableName, Key: { id: report } };
  await table.documents.send(new UpdateCommand({ ...what, ...fence, UpdateExpression, ExpressionAttributeNames }));
  const upTo = await orders();
  for (const page of PAGES) await write(table, `${report} ${page}`, await build(page, upTo), fencingToken);
  await write(table, report, upTo, fencingToken);
}

/** A reader signs what it read. Those who share the key write side by side, so what counts is the last writer's token. */
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
