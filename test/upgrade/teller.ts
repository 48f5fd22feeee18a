/** Tells a story to the handler on a real table: requests about the leases of one key, at a clock that the story turns. */
import { expect } from "vitest";
import { createPolicy } from "../../lib/core/policy.js";
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { directService } from "../support/direct-service.js";
import type { EventParts } from "../support/http-event.js";
import type { Reply } from "../support/reply.js";

/** A function of the service, at one story. */
export interface Teller {
  readonly key: string;
  readonly clock: VirtualClock;
  /** Returns the id of the story's lease with this number. */
  id(lease: number): string;
  /** Sends a request about the key, and the lease with this number if it names one. Expects the answer's status. */
  ask(status: number, routeKey: string, lease?: number, parts?: Partial<EventParts>): Promise<Reply>;
}

/** A record in the table. */
export interface Story {
  readonly name: string;
  /** Leaves the record in the table. */
  readonly writes: (teller: Teller) => Promise<unknown>;
  /** Checks the answers about the record, and goes on from it. */
  readonly continues: (teller: Teller) => Promise<unknown>;
}

/** The start of each story. It is fixed, as the ids are, so that a version always writes the same items. */
export const START_MS = Date.UTC(2027, 0, 1);

/** Creates a function on the table, at the time `nowMs`. It keeps no request waiting. */
export function tellerOf({ name }: Story, calls: TableCalls, tableName: string, nowMs: number): Teller {
  const clock = new VirtualClock(nowMs);
  const store = createDynamoStore({ calls, tableName, policy: createPolicy(), clock, random: () => 0 });
  const service = directService({ clock, store, serverWaitMs: 0 });
  const id = (lease: number): string =>
    leaseIdFrom(
      START_MS + lease,
      Uint8Array.from({ length: 10 }, () => lease),
    );
  return {
    key: name,
    clock,
    id,
    async ask(status, routeKey, lease, parts = {}) {
      const reply = await service.ask(routeKey, { key: name, ...(lease !== undefined && { leaseId: id(lease) }), ...parts });
      expect(reply.status, `${routeKey} of ${name}: ${reply.text}`).toBe(status);
      return reply;
    },
  };
}
