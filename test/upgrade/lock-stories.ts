/** The stories of locks. A lease of an hour lasts through each of them, and a lease of 5 s can be taken over. */
import { expect } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { ACQUIRE, CHECK, RELEASE, RENEW } from "../support/direct-service.js";
import { type EventParts, BOB } from "../support/http-event.js";
import type { Reply } from "../support/reply.js";
import type { Story, Teller } from "./teller.js";

const INSPECT = "GET /v1/locks/{key}";
const BREAK = "POST /v1/locks/{key}/break";
const MODE = "POST /v1/locks/{key}/leases/{leaseId}/mode";
const TRANSFER = "POST /v1/locks/{key}/leases/{leaseId}/transfer";
const ACQUIRE_SET = "PUT /v1/lock-sets/{leaseId}";
const RENEW_SET = "POST /v1/lock-sets/{leaseId}/renew";
const RELEASE_SET = "POST /v1/lock-sets/{leaseId}/release";

const LEASE_MS = 3_600_000;
const SHORT_MS = 5_000;
/** Longer than a short lease and its margin. */
const LATER_MS = 30_000;
/** The time between a release's reading of its clocks and its write. */
const STALL_MS = 2_000;
const SCOPE = "the-scope-of-one-request";
const META = { request: "0f3a", attempt: 2 };
const SEMAPHORE = { limit: 3 };

const holds = (body: object = {}): Partial<EventParts> => ({ body: { leaseMs: LEASE_MS, owner: "checkout-7", ...body } });
const waits = (body: object = {}): Partial<EventParts> => ({ ...holds(body), headers: { prefer: "wait=5" } });
const short = (body: object = {}): Partial<EventParts> => holds({ leaseMs: SHORT_MS, ...body });

/** A release's `Lease-State`. */
const ended = async (teller: Teller, lease: number): Promise<string | undefined> =>
  (await teller.ask(204, RELEASE, lease)).headers["lease-state"];
const token = ({ body }: Reply): number => body.fencingToken as number;
const codeOf = ({ body }: Reply): string => body.code as string;

/** Holds, alone or with others. */
const HOLDS: readonly Story[] = [
  {
    name: "held",
    writes: (t) => t.ask(201, ACQUIRE, 1, holds({ meta: META })),
    async continues(t) {
      const held = await t.ask(200, CHECK, 1);
      expect(held.body).toMatchObject({ owner: "checkout-7", mode: "exclusive", permits: 1, leaseMs: LEASE_MS, meta: META });
      expect(held.body).toMatchObject({ remainingMs: LEASE_MS, fencingToken: t.clock.wallMs() });
      expect(token(await t.ask(200, ACQUIRE, 1, holds({ meta: META })))).toBe(token(held));
      expect(codeOf(await t.ask(422, ACQUIRE, 1, holds()))).toBe("lease-reused");
      await t.ask(403, ACQUIRE, 1, { ...holds({ meta: META }), authorizer: BOB });
      for (const route of [CHECK, RENEW]) await t.ask(403, route, 1, { authorizer: BOB });
      const { body } = await t.ask(423, ACQUIRE, 2, holds());
      expect(body.holders).toMatchObject([{ owner: "checkout-7", fencingToken: token(held), remainingMs: LEASE_MS }]);
      await t.clock.advance(1);
      expect((await t.ask(200, RENEW, 1)).body).toMatchObject({ fencingToken: token(held), remainingMs: LEASE_MS });
    },
  },
  {
    name: "expired",
    writes: (t) => t.ask(201, ACQUIRE, 1, short()),
    async continues(t) {
      await t.clock.advance(SHORT_MS);
      expect((await t.ask(410, RENEW, 1)).body.reason).toBe("expired");
      await t.clock.advance(takeoverMarginMs(SHORT_MS) - 1);
      await t.ask(423, ACQUIRE, 2, holds());
      await t.clock.advance(1);
      await t.ask(201, ACQUIRE, 2, holds());
      expect(await ended(t, 1)).toBe("lost");
    },
  },
  {
    name: "renewed",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, short());
      await t.clock.advance(1000);
      await t.ask(200, RENEW, 1, { body: { leaseMs: LEASE_MS, meta: META } });
    },
    async continues(t) {
      expect((await t.ask(200, CHECK, 1)).body).toMatchObject({ remainingMs: LEASE_MS, leaseMs: LEASE_MS, meta: META });
      expect((await t.ask(200, INSPECT)).body.holders).toMatchObject([{ heldMs: 1000 }]);
      expect(await ended(t, 1)).toBe("released");
      expect(token(await t.ask(201, ACQUIRE, 2, holds()))).toBe(t.clock.wallMs());
    },
  },
  {
    name: "semaphore",
    writes: (t) => t.ask(201, ACQUIRE, 1, holds({ ...SEMAPHORE, permits: 2 })),
    async continues(t) {
      expect((await t.ask(200, INSPECT)).body).toMatchObject({ limit: 3, holders: [{ permits: 2 }] });
      await t.ask(409, ACQUIRE, 2, holds({ limit: 4 }));
      const { body } = await t.ask(201, ACQUIRE, 3, holds(SEMAPHORE));
      expect(body.fenceFloor).toBeLessThan(body.fencingToken);
      expect(body.fencingToken).toBe(t.clock.wallMs() + 1);
      await t.ask(423, ACQUIRE, 4, holds(SEMAPHORE));
      await t.ask(204, RELEASE, 1);
      await t.ask(201, ACQUIRE, 5, holds({ ...SEMAPHORE, permits: 2 }));
    },
  },
  {
    name: "readers",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds({ mode: "shared" }));
      await t.ask(201, ACQUIRE, 2, holds({ mode: "shared" }));
    },
    async continues(t) {
      await t.ask(423, ACQUIRE, 3, holds());
      const { body } = await t.ask(201, ACQUIRE, 4, holds({ mode: "shared" }));
      expect(body).toMatchObject({ fenceFloor: body.fencingToken - 2, mode: "shared" });
      expect(token(await t.ask(200, CHECK, 2))).toBe(body.fencingToken - 1);
      for (const lease of [1, 2, 4]) await t.ask(204, RELEASE, lease);
      await t.ask(201, ACQUIRE, 5, holds());
    },
  },
  {
    name: "upgrading",
    async writes(t) {
      const first = await t.ask(201, ACQUIRE, 1, holds({ mode: "shared" }));
      await t.ask(201, ACQUIRE, 2, holds({ mode: "shared" }));
      await t.ask(423, MODE, 1, { body: { mode: "exclusive", fencingToken: token(first) } });
    },
    async continues(t) {
      const tokens = [token(await t.ask(200, CHECK, 1)), token(await t.ask(200, CHECK, 2))];
      const second = await t.ask(409, MODE, 2, { body: { mode: "exclusive", fencingToken: tokens[1] } });
      expect(codeOf(second)).toBe("upgrade-conflict");
      await t.ask(423, ACQUIRE, 3, holds({ mode: "shared" }));
      await t.ask(204, RELEASE, 2);
      const writer = await t.ask(200, MODE, 1, { body: { mode: "exclusive", fencingToken: tokens[0] } });
      expect(token(writer)).toBeGreaterThan(tokens[1]!);
    },
  },
  {
    name: "reentrant",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds({ scope: SCOPE }));
      await t.ask(201, ACQUIRE, 2, holds({ scope: SCOPE }));
    },
    async continues(t) {
      expect((await t.ask(200, CHECK, 1)).body.holdCount).toBe(2);
      expect((await t.ask(201, ACQUIRE, 3, holds({ scope: SCOPE }))).body.holdCount).toBe(3);
      await t.ask(423, ACQUIRE, 4, holds({ scope: `${SCOPE}-2` }));
      for (const lease of [3, 2]) await t.ask(204, RELEASE, lease);
      await t.ask(423, ACQUIRE, 5, holds());
    },
  },
  {
    name: "set",
    writes: (t) => t.ask(201, ACQUIRE_SET, 1, holds({ keys: [t.key, `${t.key}-2`] })),
    async continues(t) {
      const keys = [t.key, `${t.key}-2`];
      const { body } = await t.ask(200, RENEW_SET, 1, { body: { keys } });
      expect(Object.keys(body.fencingTokens)).toEqual(keys);
      expect((await t.ask(423, ACQUIRE_SET, 2, holds({ keys: [`${t.key}-2`, `${t.key}-3`] }))).body.blocking).toEqual([`${t.key}-2`]);
      expect((await t.ask(200, RELEASE_SET, 1, { body: { keys } })).body.states).toEqual({
        [keys[0]!]: "released",
        [keys[1]!]: "released",
      });
    },
  },
  {
    name: "transferred",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(200, TRANSFER, 1, { body: { leaseId: t.id(2), owner: "packer-1" } });
    },
    async continues(t) {
      expect(await ended(t, 1)).toBe("transferred");
      // The first call of the new lease binds it to its caller.
      expect((await t.ask(200, RENEW, 2, { authorizer: BOB })).body).toMatchObject({ owner: "packer-1" });
      await t.ask(403, RENEW, 2);
    },
  },
  {
    name: "breaking",
    async writes(t) {
      const { body } = await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, BREAK, undefined, { body: { reason: "hangs", fencingToken: body.fencingToken } });
    },
    async continues(t) {
      expect((await t.ask(200, CHECK, 1)).body.remainingMs).toBe(LEASE_MS);
      expect((await t.ask(410, RENEW, 1)).body.reason).toBe("broken");
      await t.ask(423, ACQUIRE, 2, holds());
      expect(await ended(t, 1)).toBe("released");
    },
  },
  {
    name: "drained",
    async writes(t) {
      const { body } = await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, BREAK, undefined, { body: { reason: "hangs", fencingToken: body.fencingToken, drainMs: 2000 } });
    },
    async continues(t) {
      await t.clock.advance(2000);
      // A forced break leaves no time to repair it, so the loss is told.
      await t.ask(201, ACQUIRE, 2, holds());
      expect(await ended(t, 1)).toBe("lost");
    },
  },
];

/** Waiters and offers. */
const QUEUES: readonly Story[] = [
  {
    name: "queue",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, ACQUIRE, 2, waits({ owner: "second" }));
      await t.ask(202, ACQUIRE, 3, waits({ owner: "reader", mode: "shared" }));
      await t.ask(202, ACQUIRE, 4, waits({ owner: "urgent", priority: 9 }));
      await t.clock.advance(10_000);
      for (const [lease, body] of [
        [2, { owner: "second" }],
        [3, { owner: "reader", mode: "shared" }],
        [4, { owner: "urgent", priority: 9 }],
      ] as const)
        await t.ask(202, ACQUIRE, lease, waits(body));
    },
    async continues(t) {
      expect((await t.ask(200, INSPECT)).body.waiters).toMatchObject([
        { owner: "urgent", priority: 9, position: 1 },
        { owner: "second", mode: "exclusive", priority: 0, position: 2 },
        { owner: "reader", mode: "shared", priority: 0, position: 3 },
      ]);
      await t.ask(403, ACQUIRE, 2, { ...waits({ owner: "second" }), authorizer: BOB });
      expect(codeOf(await t.ask(422, ACQUIRE, 2, waits({ owner: "another" })))).toBe("lease-reused");
      await t.clock.advance(10_000);
      expect((await t.ask(202, ACQUIRE, 2, waits({ owner: "second" }))).body.position).toBe(2);
      expect((await t.ask(202, ACQUIRE, 4, waits({ owner: "urgent", priority: 9 }))).body.position).toBe(1);
      expect((await t.ask(202, ACQUIRE, 5, waits({ owner: "newcomer" }))).body.position).toBe(4);
      expect(await ended(t, 1)).toBe("released");
      await t.ask(202, ACQUIRE, 2, waits({ owner: "second" }));
      await t.ask(201, ACQUIRE, 4, waits({ owner: "urgent", priority: 9 }));
      await t.ask(204, RELEASE, 4);
      await t.ask(201, ACQUIRE, 2, waits({ owner: "second" }));
      await t.ask(204, RELEASE, 2);
      expect((await t.ask(201, ACQUIRE, 3, waits({ owner: "reader", mode: "shared" }))).body.mode).toBe("shared");
    },
  },
  {
    name: "queue-of-the-dead",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, short());
      await t.ask(202, ACQUIRE, 2, waits({ owner: "dead" }));
      await t.clock.advance(4000);
      await t.ask(202, ACQUIRE, 3, waits({ owner: "alive" }));
    },
    async continues(t) {
      await t.clock.advance(14_000);
      // The lease was not renewed, and the first waiter was not seen for longer than its place lasts.
      await t.ask(201, ACQUIRE, 3, waits({ owner: "alive" }));
      expect((await t.ask(202, ACQUIRE, 2, waits({ owner: "dead" }))).body.position).toBe(1);
    },
  },
  {
    name: "offer",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, ACQUIRE, 2, waits({ owner: "second" }));
      await t.ask(204, RELEASE, 1);
    },
    async continues(t) {
      expect((await t.ask(202, ACQUIRE, 3, waits())).body.position).toBe(2);
      expect((await t.ask(201, ACQUIRE, 2, waits({ owner: "second" }))).body.owner).toBe("second");
    },
  },
  {
    name: "lapsed-offer",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, ACQUIRE, 2, waits({ owner: "second" }));
      await t.ask(202, ACQUIRE, 3, waits({ owner: "third" }));
      await t.clock.advance(1);
      await t.ask(204, RELEASE, 1);
    },
    async continues(t) {
      await t.clock.advance(DEFAULTS.offerWindowMs - 1);
      expect((await t.ask(202, ACQUIRE, 3, waits({ owner: "third" }))).body.position).toBe(2);
      await t.clock.advance(LATER_MS);
      await t.ask(201, ACQUIRE, 4, waits({ owner: "fourth" }));
    },
  },
  {
    name: "offer-by-a-stalled-release",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      t.clock.jumpWall(STALL_MS);
      await t.ask(202, ACQUIRE, 2, waits({ owner: "second" }));
      t.clock.jumpWall(-STALL_MS);
      await t.ask(204, RELEASE, 1);
    },
    async continues(t) {
      await t.clock.advance(DEFAULTS.offerWindowMs);
      await t.ask(202, ACQUIRE, 3, waits({ owner: "third" }));
      await t.clock.advance(STALL_MS);
      await t.ask(201, ACQUIRE, 3, waits({ owner: "third" }));
    },
  },
  {
    name: "offer-to-readers",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, ACQUIRE, 2, waits({ owner: "second", mode: "shared" }));
      await t.ask(202, ACQUIRE, 3, waits({ owner: "third", mode: "shared" }));
      await t.ask(202, ACQUIRE, 4, waits({ owner: "writer" }));
      await t.ask(204, RELEASE, 1);
    },
    async continues(t) {
      await t.ask(201, ACQUIRE, 3, waits({ owner: "third", mode: "shared" }));
      await t.ask(201, ACQUIRE, 2, waits({ owner: "second", mode: "shared" }));
      expect((await t.ask(202, ACQUIRE, 4, waits({ owner: "writer" }))).body.position).toBe(1);
      for (const lease of [2, 3]) await t.ask(204, RELEASE, lease);
      await t.ask(201, ACQUIRE, 4, waits({ owner: "writer" }));
    },
  },
  {
    name: "offer-of-permits",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds({ ...SEMAPHORE, permits: 3 }));
      await t.ask(202, ACQUIRE, 2, waits({ ...SEMAPHORE, permits: 2, priority: 3 }));
      await t.ask(202, ACQUIRE, 3, waits({ ...SEMAPHORE, permits: 2 }));
      await t.ask(204, RELEASE, 1);
    },
    async continues(t) {
      expect((await t.ask(202, ACQUIRE, 3, waits({ ...SEMAPHORE, permits: 2 }))).body.position).toBeGreaterThan(0);
      await t.ask(202, ACQUIRE, 4, waits({ ...SEMAPHORE, permits: 1 }));
      await t.ask(201, ACQUIRE, 2, waits({ ...SEMAPHORE, permits: 2, priority: 3 }));
    },
  },
  {
    name: "long-owners",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(202, ACQUIRE, 2, waits({ owner: "o".repeat(128) }));
    },
    async continues(t) {
      await t.ask(202, ACQUIRE, 3, waits());
      expect((await t.ask(200, INSPECT)).body.waiters.map(({ owner }: { owner: string }) => owner.length)).toEqual([128, 10]);
    },
  },
];

/** Leases that are over. */
const ENDS: readonly Story[] = [
  {
    name: "ended",
    async writes(t) {
      await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(204, RELEASE, 1);
      await t.ask(204, RELEASE, 2); // It was cancelled before it held.
      await t.ask(201, ACQUIRE, 3, short());
      await t.clock.advance(LATER_MS);
      await t.ask(201, ACQUIRE, 4, holds()); // The lease 3 was taken over.
      await t.ask(200, TRANSFER, 4, { body: { leaseId: t.id(5) } });
      const { body } = await t.ask(200, CHECK, 5);
      await t.ask(200, BREAK, undefined, { body: { reason: "hangs", fencingToken: body.fencingToken, drainMs: 0 } });
    },
    async continues(t) {
      expect(await Promise.all([1, 2, 3, 4, 5].map((lease) => ended(t, lease)))).toEqual([
        "released",
        "never",
        "lost",
        "transferred",
        "lost",
      ]);
      for (const lease of [1, 2, 3, 4, 5]) expect(codeOf(await t.ask(410, ACQUIRE, lease, holds()))).toBe("lease-over");
      const lost = await Promise.all([1, 2, 3, 4, 5].map((lease) => t.ask(410, RENEW, lease)));
      expect(lost.map(({ body }) => body.reason as string)).toEqual(["released", "never", "taken", "transferred", "broken"]);
      await t.ask(201, ACQUIRE, 6, holds());
    },
  },
  {
    name: "broken",
    async writes(t) {
      const { body } = await t.ask(201, ACQUIRE, 1, holds());
      await t.ask(200, BREAK, undefined, { body: { reason: "hangs", fencingToken: body.fencingToken, drainMs: 0 } });
      await t.ask(201, ACQUIRE, 2, holds());
    },
    async continues(t) {
      // A repeat of the break spares the next holder.
      await t.ask(200, BREAK, undefined, { body: { reason: "hangs", fencingToken: t.clock.wallMs(), drainMs: 0 } });
      await t.ask(200, CHECK, 2);
    },
  },
  {
    name: "low-watermark",
    async writes(t) {
      for (let lease = 1; lease <= 12; lease++) {
        await t.ask(201, ACQUIRE, lease, holds());
        await t.ask(204, RELEASE, lease);
      }
    },
    async continues(t) {
      for (let lease = 1; lease <= 12; lease++) expect(codeOf(await t.ask(410, ACQUIRE, lease, holds()))).toBe("lease-over");
      // A grant's token is above all before it, although the clock stood still.
      expect(token(await t.ask(201, ACQUIRE, 13, holds()))).toBe(t.clock.wallMs() + 12);
    },
  },
];

/** The stories of locks. */
export const LOCK_STORIES: readonly Story[] = [...HOLDS, ...QUEUES, ...ENDS];
