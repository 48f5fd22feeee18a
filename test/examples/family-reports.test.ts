/** The report: concurrent readers, an exclusive rebuild, and a control without the lock. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Desk, PAGES, readReport, rebuildReport, signReport } from "../../examples/family/reports.js";
import { type Stage, openStage } from "../../examples/family/stage.js";
import { read } from "../../examples/family/table.js";
import { type Lease, type LockClient, key } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { crash } from "./family-crash.js";
import { gate } from "./gate.js";
import { unlocked } from "./family-unlocked.js";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage({ endpoint: inject("engineEndpoint") });
});
afterAll(() => stage.close());

/** The data behind a report: a number of orders, and a build that counts itself. */
function office(join: () => Pick<LockClient, "readWrite">) {
  const books = { orders: 1, builds: 0, pages: 0 };
  const orders = (): Promise<number> => Promise.resolve(books.orders);
  const build = (page: string): Promise<number> => {
    if (page === PAGES[0]) books.builds++;
    books.pages++;
    return Promise.resolve(books.builds);
  };
  const desk = (special: Partial<Desk> = {}): Desk => ({ locks: join(), table: stage.table, orders, build, ...special });
  return { books, desk, build };
}

/** A reader finds the report fresh. Then a rebuild goes as far as it can, and then the reader reads the pages. */
async function readWhileRebuilt(report: string, join: () => Pick<LockClient, "readWrite">) {
  const { desk, build } = office(join);
  await rebuildReport(desk(), report);
  const [looked, go, half, finish] = [gate(), gate(), gate(), gate()];
  const reading = readReport(desk({ orders: () => (looked.open(), go.opened.then(() => 1)) }), report);
  await looked.opened;
  const slowly = async (page: string): Promise<number> => {
    if (page === PAGES[1]) await (half.open(), finish.opened);
    return build(page);
  };
  const rebuilt = rebuildReport(desk({ build: slowly }), report);
  return { reading, rebuilt, half, desk, go, finish };
}

describe("a report", () => {
  it("is not rebuilt while somebody reads it, nor read while it is rebuilt", async () => {
    const join = (): LockClient => stage.join();
    const { reading, rebuilt, half, desk, go, finish } = await readWhileRebuilt("whole", join);
    const { read: readers, write: writers } = join().readWrite(key("REPORT", "whole"));
    expect(await writers.tryAcquire()).toBeNull();
    go.open();
    expect(await reading).toEqual([1, 1, 1]);
    await half.opened;
    expect(await readers.tryAcquire()).toBeNull();
    const after = readReport(desk(), "whole");
    finish.open();
    await rebuilt;
    expect(await after).toEqual([2, 2, 2]);
  });

  it("control: without the lock a read sees half of a rebuild", async () => {
    const { reading, rebuilt, half, go, finish } = await readWhileRebuilt("half", unlocked);
    await half.opened;
    go.open();
    expect(await reading).toEqual([2, 1, 1]);
    finish.open();
    await rebuilt;
  });
});

describe("a reader's signature", () => {
  const signers = async (report: string): Promise<string[]> =>
    [...((await read(stage.table, report))!["signedBy"] as Set<string>)].toSorted();

  /** Two readers of an earlier build, with simulated time. */
  async function twoReaders(report: string) {
    const first = createLockClient();
    const next = createLockClient({ store: first.store, clock: first.clock });
    const { desk } = office(() => next);
    await rebuildReport(desk(), report);
    const readerAt = (locks: LockClient): Promise<Lease> => locks.readWrite(key("REPORT", report)).read.acquire();
    return { first, desk, ann: await readerAt(first), bob: await readerAt(next) };
  }

  it("is taken from readers in any order", async () => {
    const { ann, bob } = await twoReaders("signed");
    expect(ann.fencingToken).toBeLessThan(bob.fencingToken);
    await signReport(stage.table, "signed", "bob", bob);
    await signReport(stage.table, "signed", "ann", ann);
    expect(await signers("signed")).toEqual(["ann", "bob"]);
  });

  it("control: under their own tokens the later reader's refuses the earlier one's", async () => {
    const { ann, bob } = await twoReaders("refused");
    const own = ({ fencingToken }: typeof ann) => ({ fenceFloor: fencingToken });
    await signReport(stage.table, "refused", "bob", own(bob));
    await expect(signReport(stage.table, "refused", "ann", own(ann))).rejects.toThrow("conditional request failed");
  });

  it("is refused when it comes from before a rebuild", async () => {
    const { first, ann, bob, desk } = await twoReaders("late");
    await bob.release();
    await crash(first);
    await rebuildReport(desk(), "late");
    await expect(signReport(stage.table, "late", "ann", ann)).rejects.toThrow("conditional request failed");
    expect((await read(stage.table, "late"))!["signedBy"]).toBeUndefined();
  });
});
