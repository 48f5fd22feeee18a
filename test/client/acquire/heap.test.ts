/** The heap of waiters: its order, and the small number of members that any operation reads. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heap } from "../../../lib/client/ask/heap.js";

interface Member {
  readonly rank: number;
}

describe("a heap", () => {
  it("always has the lowest member first, whatever is added and deleted", () => {
    const step = fc.record({ deletes: fc.boolean(), rank: fc.integer({ min: 0, max: 50 }), at: fc.nat() });
    const property = fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const heap = new Heap<Member>(({ rank }) => rank);
      const members: Member[] = [];
      for (const { deletes, rank, at } of steps) {
        if (deletes && members.length > 0) {
          const [member] = members.splice(at % members.length, 1);
          expect(heap.delete(member!)).toBe(true);
          expect(heap.delete(member!)).toBe(false);
        } else {
          const member = { rank };
          members.push(member);
          heap.add(member);
        }
        expect(heap.size).toBe(members.length);
        expect(heap.first?.rank).toBe(members.length === 0 ? undefined : Math.min(...members.map((one) => one.rank)));
      }
    });
    fc.assert(property, { numRuns: 300 });
  });

  it.each([100, 10_000])("of %d members compares at most a few with each one that comes or goes", (size) => {
    let looks = 0;
    let seed = 7;
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647);
    const heap = new Heap<Member>(({ rank }) => {
      looks++;
      return rank;
    });
    const members = Array.from({ length: size }, () => ({ rank: random() }));
    const depth = Math.ceil(Math.log2(size)) + 1;
    let most = 0;
    const counted = (task: () => void): void => {
      looks = 0;
      task();
      most = Math.max(most, looks);
    };
    for (const member of members) counted(() => heap.add(member));
    for (const member of members) counted(() => heap.delete(member));
    expect(most).toBeLessThanOrEqual(4 * depth);
    expect(heap.size).toBe(0);
  });
});
