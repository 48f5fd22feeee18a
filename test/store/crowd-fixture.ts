/** A crowd on one key: each member is a process of its own, with a store that has seen nothing and counts its requests. */
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { StoreUnavailable } from "../../lib/store/port.js";
import type { EngineTable } from "./differential/differential-pair.js";
import { dynamoStoreOn, Fixture, freshNamespace, outcomeOf } from "./fixture.js";

/** Requests to the table. */
interface Requests {
  writes: number;
  reads: number;
}

/** A member of a crowd. */
interface Member {
  lock: Fixture;
  readonly requests: Requests;
}

/** A crowd, and what it asked of the table. */
export interface Crowd {
  readonly members: readonly Member[];
  /** Starts counting anew. */
  forget(): void;
  /** The same, with processes that have seen nothing. */
  restart(): void;
  total(): Requests;
}

/** Returns a crowd of this many processes on one key of this table. */
export function crowdOn({ calls, tableName }: EngineTable, size: number): Crowd {
  const address = { namespace: freshNamespace(), kind: "locks", key: "CROWD_1" } as const;
  const start = (requests: Requests): Fixture => {
    const counted: TableCalls = {
      getItem: (input) => (requests.reads++, calls.getItem(input)),
      updateItem: (input) => (requests.writes++, calls.updateItem(input)),
      query: (input) => calls.query(input),
      transactWriteItems: (input) => calls.transactWriteItems(input),
    };
    return new Fixture(dynamoStoreOn({ calls: counted, tableName }, Math.random), address);
  };
  const members = Array.from({ length: size }, (): Member => {
    const requests = { writes: 0, reads: 0 };
    return { requests, lock: start(requests) };
  });
  const forget = (): void => members.forEach(({ requests }) => Object.assign(requests, { writes: 0, reads: 0 }));
  return {
    members,
    forget,
    restart() {
      forget();
      for (const member of members) member.lock = start(member.requests);
    },
    total: () =>
      members.reduce((sum, { requests }) => ({ writes: sum.writes + requests.writes, reads: sum.reads + requests.reads }), {
        ...{ writes: 0, reads: 0 },
      }),
  };
}

/** Returns the most requests that a member sent. */
export function most({ members }: Crowd): Requests {
  const max = (name: keyof Requests): number => Math.max(...members.map(({ requests }) => requests[name]));
  return { writes: max("writes"), reads: max("reads") };
}

/** Lets all members act at once. The outcome of a request that lost too many races is `gave up`. */
export function together(
  { members }: Crowd,
  act: (lock: Fixture, order: number) => Promise<Parameters<typeof outcomeOf>[0]>,
): Promise<readonly string[]> {
  return Promise.all(
    members.map(({ lock }, order) =>
      act(lock, order).then(outcomeOf, (error: unknown) => {
        if (error instanceof StoreUnavailable && error.throttled) return "gave up";
        throw error;
      }),
    ),
  );
}

/** Counts equal outcomes. */
export function tally(outcomes: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
