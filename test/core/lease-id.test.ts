/** Lease ids: UUIDv7 in the layout of RFC 9562, so that their order as text is the order of their times. */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLeaseId, isSameLeaseId, leaseIdFrom, leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { offerOf, placeOf } from "../../lib/core/lock/places.js";
import { EMPTY_RECORD, endingOf } from "../../lib/core/lock/tombstones.js";
import type { Offer, Waiter } from "../../lib/core/record.js";

const timeMs = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const bytes = fc.uint8Array({ minLength: 10, maxLength: 10 });

describe("leaseIdFrom", () => {
  it("lays the example of RFC 9562 out as the RFC does", () => {
    // Appendix A.6: 22 February 2022, 19:22:22 GMT; rand_a CC3, rand_b 18C4DC0C0C07398F.
    const random = Uint8Array.from([0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f]);
    expect(leaseIdFrom(1_645_557_742_000, random)).toBe("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  });

  it("has version 7 and the RFC's variant, whatever the random bytes", () => {
    fc.assert(
      fc.property(timeMs, bytes, (time, random) => {
        const id = leaseIdFrom(time, random);
        expect(isLeaseId(id)).toBe(true);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      }),
    );
  });

  it("gives its time back, to the millisecond", () => {
    fc.assert(fc.property(timeMs, bytes, (time, random) => leaseIdTimeMs(leaseIdFrom(time, random)) === time));
    expect(leaseIdTimeMs(leaseIdFrom(1234.9, new Uint8Array(10)))).toBe(1234);
  });

  it("sorts as text by time", () => {
    fc.assert(
      fc.property(timeMs, timeMs, bytes, bytes, (time, other, random, otherRandom) => {
        fc.pre(time !== other);
        expect(leaseIdFrom(time, random) < leaseIdFrom(other, otherRandom)).toBe(time < other);
      }),
    );
  });

  it("carries 74 random bits: ids of one millisecond differ, and every bit of theirs is random", () => {
    const ids = Array.from({ length: 2000 }, () => leaseIdFrom(1_800_000_000_000, randomBytes(10)));
    expect(new Set(ids).size).toBe(ids.length);
    const bits = ids.map((id) => BigInt(`0x${id.replaceAll("-", "")}`));
    const ever = bits.reduce((seen, id) => seen | id, 0n);
    const always = bits.reduce((seen, id) => seen & id, ever);
    const varying = (ever & ~always).toString(2).replaceAll("0", "").length;
    expect(varying).toBe(74);
  });
});

describe("isLeaseId", () => {
  it.each(["017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"])(
    "takes %s",
    (text) => {
      expect(isLeaseId(text)).toBe(true);
    },
  );

  it.each([
    ["another version", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f"],
    ["another variant", "017f22e2-79b0-7cc3-78c4-dc0c0c07398f"],
    ["upper case, which sorts elsewhere", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"],
    ["no dashes", "017f22e279b07cc398c4dc0c0c07398f"],
    ["braces", "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}"],
    ["a line after it", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n"],
    ["something that isn't hex", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g"],
    ["nothing", ""],
  ])("refuses %s", (_what, text) => {
    expect(isLeaseId(text)).toBe(false);
  });
});

describe("a comparison of ids", () => {
  const id = leaseIdFrom(1_645_557_742_000, new Uint8Array(10));
  /** An id that counts how often its characters are read. */
  const counted = (text: string) => {
    const seen = { reads: 0 };
    const spy = { length: text.length, charCodeAt: (at: number) => (seen.reads++, text.charCodeAt(at)) };
    return { seen, id: spy as unknown as string };
  };
  const other = (at: number): string => `${id.slice(0, at)}x${id.slice(at + 1)}`;

  it("is true of the same id alone", () => {
    fc.assert(
      fc.property(timeMs, bytes, timeMs, bytes, (time, random, otherTime, otherRandom) => {
        const [one, two] = [leaseIdFrom(time, random), leaseIdFrom(otherTime, otherRandom)];
        expect(isSameLeaseId(one, leaseIdFrom(time, random))).toBe(true);
        expect(isSameLeaseId(one, two)).toBe(one === two);
      }),
    );
    for (const wrong of ["", id.slice(1), id.slice(0, -1), `${id}0`]) {
      expect(isSameLeaseId(id, wrong)).toBe(false);
      expect(isSameLeaseId(wrong, id)).toBe(false);
    }
  });

  it.each<[where: string, find: (stored: string, named: string) => unknown]>([
    ["among waiters", (stored, named) => placeOf({ ...EMPTY_RECORD, waiters: [{ leaseId: stored } as Waiter] }, named)],
    ["among offers", (stored, named) => offerOf({ ...EMPTY_RECORD, offers: [{ leaseId: stored } as Offer] }, named)],
    ["among ended leases", (stored, named) => endingOf({ ...EMPTY_RECORD, tombstones: [{ leaseId: stored, ending: "released" }] }, named)],
  ])("%s takes as many steps wherever the ids differ", (_where, find) => {
    const reads = Array.from(id, (_char, at) => {
      const named = counted(other(at));
      find(id, named.id);
      return named.seen.reads;
    });
    expect(new Set(reads)).toEqual(new Set([id.length]));
  });
});
