/** A store's listings: held keys by prefix, in order, page by page, over any number of shards. */
import { describe, expect, it } from "vitest";
import type { Kind } from "../../../lib/core/api/locks.js";
import type { LockStore } from "../../../lib/store/port.js";
import { A, freshNamespace, Fixture } from "../fixture.js";

const KEYS = 120;

/** Names with digits, letters of both cases and the other characters of keys, so that the order must be the bytes'. */
const nameOf = (index: number): string =>
  `ORDER_${String.fromCharCode(...[45, 46, 48, 57, 58, 65, 90, 95, 97, 122, 126].slice(index % 11, (index % 11) + 1))}${index}`;

export function lists(store: () => LockStore): void {
  describe("with many keys", () => {
    const namespace = freshNamespace();
    const names = Array.from({ length: KEYS }, (_, index) => nameOf(index));
    const held = names.filter((_, index) => index % 4 !== 3).sort();
    let filled: Promise<unknown> | undefined;

    /** Holds three of every four keys; the fourth was released, or only cancelled. */
    const fill = (): Promise<unknown> =>
      (filled ??= Promise.all(
        names.map(async (key, index) => {
          const lock = new Fixture(store(), { namespace, key });
          if (index % 8 !== 7) await lock.acquire(A);
          if (index % 4 === 3) await lock.release(A);
        }),
      ));

    it.each([7, 50, 1000])("lists those that are held, each once and in order, %i to a page", async (max) => {
      await fill();
      const pages = await pagesOf(store(), { namespace, prefix: "", max });
      for (const page of pages) expect(page.length).toBeLessThanOrEqual(max);
      expect(pages.flat()).toEqual(held);
    });

    it.each(["ORDER_", "ORDER_a", "ORDER_~1", "ORDER_:4", "ORDER", "order"])("lists those that begin with %s", async (prefix) => {
      await fill();
      const pages = await pagesOf(store(), { namespace, prefix, max: 9 });
      expect(pages.flat()).toEqual(held.filter((key) => key.startsWith(prefix)));
    });

    it.each(["ORDER_9", "ORDER_~", "A", "z"])("goes on after %s, wherever that lies", async (after) => {
      await fill();
      for (const prefix of ["", "ORDER_", "ORDER_Z"]) {
        const pages = await pagesOf(store(), { namespace, prefix, max: 1000, after });
        expect(pages.flat(), prefix).toEqual(held.filter((key) => key.startsWith(prefix) && key > after));
      }
    });

    it("shows the records", async () => {
      await fill();
      const { items } = await store().list({ namespace, kind: "locks", prefix: held[0]!, after: "", max: 1 });
      expect(items).toEqual([{ key: held[0], record: await store().read({ namespace, kind: "locks", key: held[0]! }) }]);
    });
  });

  it("lists nothing of a namespace that has nothing, or whose name another's begins with", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    for (const namespace of [freshNamespace(), lock.address.namespace.slice(0, -1), `${lock.address.namespace}0`]) {
      expect(await store().list({ namespace, kind: "locks", prefix: "", after: "", max: 10 })).toEqual({ items: [] });
    }
  });

  it("lists a key from its first grant until its release, also past its expiry", async () => {
    const lock = new Fixture(store());
    const list = async (): Promise<readonly string[]> =>
      (await pagesOf(store(), { namespace: lock.address.namespace, prefix: "", max: 10 })).flat();
    expect(await list()).toEqual([]);
    await lock.acquire(A);
    lock.at(1_000_000);
    expect(await list()).toEqual(["ORDER_1"]);
    await lock.release(A);
    expect(await list()).toEqual([]);
  });
}

/** The keys of all pages. */
export async function pagesOf(
  store: LockStore,
  query: { readonly namespace: string; readonly kind?: Kind; readonly prefix: string; readonly max: number; readonly after?: string },
): Promise<readonly (readonly string[])[]> {
  const pages: string[][] = [];
  for (let after: string | undefined = query.after ?? ""; after !== undefined;) {
    const { items, next }: Awaited<ReturnType<LockStore["list"]>> = await store.list({ kind: "locks", ...query, after });
    pages.push(items.map(({ key }) => key));
    if (next !== undefined && next <= after) throw new Error(`the page after ${after} goes on after ${next}`);
    after = next;
  }
  return pages;
}
