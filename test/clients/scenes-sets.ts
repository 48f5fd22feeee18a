/** Scenes of shared locks, and of sets: several keys, of which all are held or none. */
import type { OperationName } from "../../lib/contract/routes.js";
import { FAILURES, NO_PROOFS, gateway, withBody } from "./fates.js";
import { type Scene, ask, begin, ends, free, INTERRUPT, other, seen, until } from "./scene.js";
import { broken, idAhead, notCancelled, othersHold, othersRelease } from "./scenes-locks.js";
import type { Fate } from "./scripted-service.js";

const RENEWALS: readonly OperationName[] = ["renewSet", "renewMany"];

/** Answers to a request of a set that prove nothing about it. */
const NO_PROOFS_OF_A_SET: Readonly<Record<string, Fate>> = {
  ...Object.fromEntries(
    ["a web page", "another server's {}", "a list", "an answer about another lease", "a lease whose time is a text"].map((what) => [
      what,
      NO_PROOFS[what]!,
    ]),
  ),
  "a set without the token of a key": withBody((set) => ({ ...set, fencingTokens: { k: 1 } })),
};

const PROVEN: readonly Scene[] = Object.entries(NO_PROOFS_OF_A_SET).flatMap(([what, fate]): readonly Scene[] => [
  {
    name: `an acquire of a set that meets ${what} is asked again, under the same id or after that was cancelled`,
    property: "believed",
    rules: [{ on: "acquireSet", times: 1, fate }],
    play: [ask("acquire_all k,j 60s wait 5s", "granted"), ask("held? k,j", "yes"), ask("release k,j", "released"), free("k"), free("j")],
    mistake: "A client that looks at the status alone believes in a set that it doesn't hold.",
  },
  {
    name: `a set is lost in time, and says so, when every renewal meets ${what}`,
    property: "told",
    rules: [{ on: RENEWALS, fate }],
    play: [ask("acquire_all k,j 3s wait 0s", "granted"), until("held? k,j", "no"), until("lost? k,j", "yes"), ask("release k,j", "lost")],
    mistake: "A client that looks at the status alone believes in a set that it doesn't hold.",
  },
]);

const RELEASED = ["a gateway's 403", "a gateway's 503", "another server's {}", "a cut connection"].map((what): Scene => ({
  name: `a release of a set that meets ${what} is asked again`,
  property: "nothingLeft",
  rules: [{ on: "releaseSet", times: 1, fate: FAILURES[what]! }],
  play: [ask("acquire_all k,j 60s wait 0s", "granted"), ask("release k,j", "released", "refused"), free("k"), free("j")],
  mistake: "A client that takes the answer of a gateway for the service's leaves all keys to the end of their lease.",
}));

const SETS: readonly Scene[] = [
  {
    name: "a set is not longer than it can be, whatever the answer says",
    property: "believed",
    rules: [
      { on: "acquireSet", fate: withBody((set) => ({ ...set, remainingMs: 3_600_000 })) },
      { on: RENEWALS, fate: { does: "silence" } },
    ],
    play: [ask("acquire_all k,j 3s wait 0s", "granted"), until("held? k,j", "no"), until("lost? k,j", "yes")],
    mistake: "A client that believes every number believes for an hour in a lease of 3 s.",
  },
  {
    name: "a set goes on after a renewal that meets a gateway's 403",
    property: "told",
    rules: [{ on: RENEWALS, times: 1, fate: gateway(403) }],
    play: [
      ...[ask("acquire_all k,j 6s wait 0s", "granted"), seen("renew", 2), ask("held? k,j", "yes"), ask("lost? k,j", "no")],
      ask("release k,j", "released"),
    ],
    mistake: "A client that takes the answer of a gateway for the service's gives the set up.",
  },
  {
    name: "a set of which an operator ended one key is lost at the next renewal",
    property: "told",
    play: [
      ...[ask("acquire_all k,j 6s wait 0s", "granted"), broken, until("lost? k,j", "yes"), ask("held? k,j", "no")],
      ...[ask("release k,j", "lost"), free("j")],
    ],
    mistake: "A client that renews each key for itself goes on with the others.",
  },
  {
    name: "a set whose answer got lost is one set",
    property: "oneRequest",
    rules: [{ on: "acquireSet", times: 2, fate: { does: "cut", carriedOut: true } }],
    play: [ask("acquire_all k,j 60s wait 5s", "granted"), ask("held? k,j", "yes"), ask("release k,j", "released"), free("k"), free("j")],
    mistake: "A client that makes a new id for each try meets its own set.",
  },
  {
    name: "a set that is blocked by one key holds none of the others meanwhile, and is granted when that is free",
    property: "waits",
    play: [
      ...[othersHold(), begin("acquire_all j,k 60s wait 30s"), seen("acquireSet", 1), free("j")],
      ...[othersRelease, ends("granted"), ask("held? j,k", "yes"), ask("release j,k", "released"), free("k"), free("j")],
    ],
    mistake: "A client that takes one key after another keeps the first from its callers.",
  },
  {
    name: "a wait for a set that ends leaves no place in a queue, and no key",
    property: "nothingLeft",
    play: [othersHold(), ask("acquire_all j,k 60s wait 1s", "busy"), othersRelease, free("k"), free("j")],
    sent: notCancelled,
    mistake: "A client that sends no DELETE holds up those behind it.",
  },
  {
    name: "a wait for a set that is interrupted leaves no place in a queue, and no key",
    property: "nothingLeft",
    play: [
      ...[othersHold(), begin("acquire_all j,k 60s wait 30s"), seen("acquire", 1), INTERRUPT, ends("interrupted")],
      ...[othersRelease, free("k"), free("j")],
    ],
    sent: notCancelled,
    mistake: "A client that sends no DELETE holds up those behind it.",
  },
  {
    name: "a set is granted beside callers that queue for one of its keys",
    property: "waits",
    play: [
      ...[othersHold(), begin("acquire_all j,k 60s wait 30s"), seen("acquire", 1)],
      other(async (service) => {
        await service.other("PUT", `/v1/locks/k/leases/${idAhead(0)}`, { leaseMs: 3000, owner: "other" }, { prefer: "wait=30" });
      }),
      ...[othersRelease, ends("granted"), ask("held? j,k", "yes"), ask("release j,k", "released")],
    ],
    mistake: "A client that looks at the key until it is free, and then asks, never gets one that goes from caller to caller.",
  },
];

const NO_SHARED = {
  go: "It is an example of locks alone, each for one holder.",
  java: "It has locks for one holder alone, as ShedLock and the clients that people come from.",
};

/** Another caller reads the key. */
const othersRead = other((service) =>
  service.other("PUT", `/v1/locks/k/leases/${idAhead(0)}`, { leaseMs: 60_000, owner: "other", mode: "shared" }),
);

const SHARED: readonly Scene[] = [
  {
    name: "a shared lock is held beside another shared one",
    property: "waits",
    cannot: NO_SHARED,
    play: [othersRead, ask("acquire k 3s wait 0s shared", "granted"), ask("held? k", "yes"), ask("release k", "released")],
    mistake: "A client that leaves the mode out waits for the reader.",
  },
  {
    name: "a set of shared keys is held beside other readers",
    property: "waits",
    play: [othersRead, ask("acquire_all j,k 3s wait 0s shared", "granted"), ask("held? j,k", "yes"), ask("release j,k", "released")],
    mistake: "A client that leaves the mode out waits for the reader.",
  },
];

export const SET_SCENES: readonly Scene[] = [...SHARED, ...PROVEN, ...RELEASED, ...SETS];
