/** Every option may be given as undefined, which is its default: also under exactOptionalPropertyTypes, with which these calls are compiled. */
import { describe, expect, it } from "vitest";
import type { DynamoClientOptions } from "../../lib/dynamodb.js";
import type {
  AcquireOptions,
  ElectOptions,
  HttpClientOptions,
  LockedOptions,
  OnceOptions,
  RunOptions,
  SetOptions,
  WatchOptions,
} from "../../lib/index.js";
import { locked, runOnce } from "../../lib/index.js";
import type { SigV4Options } from "../../lib/sigv4.js";
import { createLockClient } from "../../lib/testing.js";

/** All optional members as undefined. An option whose type refuses that doesn't compile. */
type Undefined<Options> = { readonly [Name in keyof Options as undefined extends Options[Name] ? Name : never]-?: undefined };
type AllUndefined<Options> = { readonly [Name in keyof Options]-?: undefined };
/** True if every optional member of the options may be given as undefined. */
type Takes<Options> = Partial<AllUndefined<OptionalOf<Options>>> extends OptionalOf<Options> ? true : false;
type OptionalOf<Options> = { readonly [Name in keyof Options as object extends Pick<Options, Name> ? Name : never]: Options[Name] };

const COMPILED: readonly true[] = [
  true satisfies Takes<AcquireOptions>,
  true satisfies Takes<SetOptions>,
  true satisfies Takes<RunOptions>,
  true satisfies Takes<ElectOptions>,
  true satisfies Takes<WatchOptions>,
  true satisfies Takes<LockedOptions<unknown, []>>,
  true satisfies Takes<OnceOptions<unknown, []>>,
  true satisfies Takes<HttpClientOptions>,
  true satisfies Takes<DynamoClientOptions>,
  true satisfies Takes<SigV4Options>,
];

const LEASE: Undefined<SetOptions> = {
  ...{ leaseMs: undefined, owner: undefined, meta: undefined, heartbeat: undefined, maxHoldMs: undefined },
  ...{ waitMs: undefined, signal: undefined },
};
const LOCK: Undefined<AcquireOptions> = { ...LEASE, mode: undefined, limit: undefined, permits: undefined, priority: undefined };

describe("options given as undefined", () => {
  it("compile, all of them", () => {
    expect(COMPILED.every(Boolean)).toBe(true);
  });

  it("are the defaults", async () => {
    const locks = createLockClient({ owner: undefined, prefix: undefined, clock: undefined, store: undefined });
    const { maxHoldMs, ...run } = LEASE;
    const { meta, ...once } = run;
    expect([maxHoldMs, meta]).toEqual([undefined, undefined]);
    const { waitMs: _waits, ...now } = LOCK;
    await (await locks.tryAcquire("a", now))?.release();
    expect(await locks.withLock("a", LOCK, ({ mode, permits }) => [mode, permits])).toEqual(["exclusive", 1]);
    expect(await locks.withLocks(["a", { key: "b", mode: undefined }], LEASE, () => 1)).toBe(1);
    expect(await locks.runOnce("a", { ...once, payload: undefined, keepResultMs: undefined, isFinal: undefined }, () => 1)).toMatchObject({
      value: 1,
    });
    expect(await locked({ ...LOCK, locks, key: () => "a", whenHeld: undefined }, async () => 1)()).toBe(1);
    expect(await runOnce({ locks, key: () => "b", payload: undefined, largeResult: undefined }, async () => 1)()).toBe(1);
    expect((await locks.list({ prefix: undefined, owner: undefined, max: undefined, cursor: undefined })).items).toEqual([]);
    expect((await locks.runs.list({ state: undefined, cursor: undefined })).items.length).toBe(2);
  });
});
