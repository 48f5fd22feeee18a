/** Scenes of a lock: what its holder believes and is told, and how a wait ends. */
import type { OperationName } from "../../lib/contract/routes.js";
import { FAILURES, NO_PROOFS, gateway, problem, withBody } from "./fates.js";
import { type Scene, ask, askSlowly, begin, ends, free, freeze, INTERRUPT, other, pass, seen, until } from "./scene.js";
import type { Exchange, Fate, Rule, ScriptedService } from "./scripted-service.js";

/** Both ways by which a heartbeat of a lock is sent. */
const RENEWALS: readonly OperationName[] = ["renew", "renewMany"];
/** The ends of an id of which nobody knows whether it was granted. */
const CANCELS: readonly Exchange["operation"][] = ["release", "abandonRun"];

const renewals = (fate: Fate, from?: number, times?: number): Rule => ({
  on: RENEWALS,
  fate,
  ...(from !== undefined && { from }),
  ...(times !== undefined && { times }),
});
const SILENT_RENEWALS = renewals({ does: "silence" });

const OTHERS = "018f0000-0000-7000-8000-0000000000aa";
/** Returns an id of another caller whose clock is so far ahead. */
export const idAhead = (ms: number): string => {
  const time = (Date.now() + ms).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-0000000000aa`;
};
/** Another caller takes the key, for `leaseMs`. */
export const othersHold = (leaseMs = 60_000): ReturnType<typeof other> => {
  return other(async (service) => {
    const id = idAhead(0);
    held.set(service, id);
    await service.other("PUT", `/v1/locks/k/leases/${id}`, { leaseMs, owner: "other" });
  });
};
const held = new WeakMap<ScriptedService, string>();
const release = (service: ScriptedService): Promise<unknown> =>
  service.other("DELETE", `/v1/locks/k/leases/${held.get(service) ?? OTHERS}`);
export const othersRelease = other(release);
/** Others take and release the key until it has forgotten all earlier ids: it remembers eight, and refuses those before the oldest of more. */
const othersUse = async (service: ScriptedService, aheadMs: number): Promise<void> => {
  for (let earlierMs = 10; earlierMs >= 0; earlierMs--) {
    const path = `/v1/locks/k/leases/${idAhead(aheadMs - earlierMs)}`;
    await service.other("PUT", path, { leaseMs: 60_000, owner: "other" });
    await service.other("DELETE", path);
  }
};
/** An operator ends the hold of the driver. */
export const broken = other(async (service) => {
  const { body } = await service.other("GET", "/v1/locks/k");
  const [holder] = (body as { readonly holders: readonly { readonly fencingToken: number }[] }).holders;
  await service.other("POST", "/v1/locks/k/break", { reason: "scene", fencingToken: holder?.fencingToken, drainMs: 0 });
});

/** Returns a sentence for each id that was asked for and neither cancelled nor released. */
export function notCancelled(exchanges: readonly Exchange[]): readonly string[] {
  const asked = new Set(exchanges.filter(({ operation }) => operation === "acquire").map(({ leaseId }) => leaseId));
  const cancelled = new Set(exchanges.filter(({ operation }) => CANCELS.includes(operation)).map(({ leaseId }) => leaseId));
  return [...asked].filter((id) => !cancelled.has(id)).map(() => "an id that may be granted was not cancelled");
}

/** A renewal that fails once is asked again while the lease lasts; one that fails for ever ends in a loss that is told. */
const RENEWED = Object.entries({ ...FAILURES, ...NO_PROOFS }).flatMap(([what, fate]): readonly Scene[] => [
  {
    name: `a lock goes on after a renewal that meets ${what}`,
    property: "told",
    rules: [renewals(fate, 1, 1)],
    play: [
      ask("acquire k 6s wait 0s", "granted"),
      seen("renew", 2),
      ask("held? k", "yes"),
      ask("lost? k", "no"),
      ask("release k", "released"),
    ],
    mistake: "It gave the lease up at the first 403 or 404; its heartbeat ended at what is no HTTP, and at a body that was cut.",
  },
  {
    name: `a lock is lost in time, and says so, when every renewal meets ${what}`,
    property: "told",
    rules: [renewals(fate)],
    play: [ask("acquire k 3s wait 0s", "granted"), until("held? k", "no"), until("lost? k", "yes"), ask("release k", "lost")],
    mistake: "Its heartbeat ended without a word: `lost` was never set, and a worker that waits for it went on beside the next holder.",
  },
]);

/** An answer to an acquire that proves nothing is no grant. */
const GRANTED = Object.entries(NO_PROOFS).flatMap(([what, fate]): readonly Scene[] => [
  {
    name: `an acquire that meets ${what} is asked again, under the same id or after that was cancelled`,
    property: "believed",
    rules: [{ on: "acquire", times: 1, fate }],
    play: [ask("acquire k 60s wait 5s", "granted"), ask("held? k", "yes"), ask("release k", "released"), free("k")],
    mistake: "Its acquire said that it was granted, or ended in an error of the language, and the key stayed held.",
  },
  {
    name: `an acquire that meets ${what} each time is refused, and its id is cancelled`,
    property: "nothingLeft",
    rules: [{ on: "acquire", fate }],
    play: [ask("acquire k 60s wait 1s", "refused", "busy"), free("k")],
    sent: notCancelled,
    mistake: "It said that it was granted a lock which it didn't hold.",
  },
]);

const BELIEVED: readonly Scene[] = [
  {
    name: "a lease is not longer than it can be, whatever the answer says",
    property: "believed",
    rules: [{ on: "acquire", fate: withBody((lease) => ({ ...lease, remainingMs: 3_600_000 })) }, SILENT_RENEWALS],
    play: [ask("acquire k 3s wait 0s", "granted"), until("held? k", "no"), until("lost? k", "yes")],
    mistake: "It believed for an hour in a lease of 3 s.",
  },
  {
    name: "a lease whose grant came late is counted from its request",
    property: "counted",
    rules: [{ on: "acquire", times: 1, fate: { does: "answer-late", byMs: 1500 } }, SILENT_RENEWALS],
    play: [ask("acquire k 3s wait 10s", "granted"), until("held? k", "no"), until("lost? k", "yes")],
    mistake: "A client that counts from the answer believes 1.5 s too long.",
  },
  {
    name: "a lease whose renewal was answered late is counted from its request",
    property: "counted",
    // A client waits for it for a sixth of its lease, or for longer.
    rules: [renewals({ does: "answer-late", byMs: 900 }, 1, 1), renewals({ does: "silence" }, 2)],
    play: [ask("acquire k 9s wait 0s", "granted"), until("held? k", "no"), until("lost? k", "yes")],
    mistake: "A client that counts from the answer believes 0.9 s too long.",
  },
  {
    name: "a process that stood still longer than its lease doesn't believe in it",
    property: "believed",
    play: [ask("acquire k 2s wait 0s", "granted"), freeze(5000), ask("held? k", "no"), until("lost? k", "yes"), ask("release k", "lost")],
    mistake: "A client that counts its heartbeats, and not the time, believes in it.",
  },
  {
    name: "a lease that was lost can't be made longer",
    property: "believed",
    rules: [renewals(FAILURES["a cut connection"]!)],
    play: [ask("acquire k 3s wait 0s", "granted"), until("lost? k", "yes"), ask("extend k 60s", "lost"), ask("held? k", "no")],
    sent: (exchanges) =>
      exchanges.flatMap(({ operation, body }) =>
        operation === "renew" && (body as { readonly leaseMs?: number }).leaseMs === 60_000 ? ["it sent the renewal"] : [],
      ),
    mistake: "It made the lease longer, believed in it again, and renewed it no more.",
  },
  {
    name: "a clock that is set back makes no lease longer",
    property: "believed",
    rules: [SILENT_RENEWALS],
    play: [ask("acquire k 3s wait 0s", "granted"), ask("clock -3600s", "ok"), until("held? k", "no"), until("lost? k", "yes")],
    mistake: "A client that counts by the wall clock alone believes for an hour.",
  },
  {
    name: "a lock that an operator ended is lost at the next renewal",
    property: "told",
    play: [
      ...[ask("acquire k 6s wait 0s", "granted"), broken, until("lost? k", "yes")],
      ...[ask("held? k", "no"), ask("release k", "lost")],
    ],
    mistake: "None of those that were tried fails it.",
  },
  {
    name: "a service that is gone ends in a loss that is told",
    property: "told",
    play: [
      ask("acquire k 3s wait 0s", "granted"),
      other((service) => service.vanish()),
      until("held? k", "no"),
      until("lost? k", "yes"),
      ask("release k", "lost", "refused"),
    ],
    mistake: "None of those that were tried fails it.",
  },
  {
    name: "a token that can't be had once doesn't end the heartbeat",
    property: "told",
    open: "token",
    play: [
      ...[ask("acquire k 6s wait 0s", "granted"), ask("token fails", "ok"), pass(2600), ask("token scripted-token-0123456789", "ok")],
      ...[seen("renew", 1), ask("held? k", "yes"), ask("lost? k", "no"), ask("release k", "released")],
    ],
    mistake: "Its heartbeat ended at the exception of the token's function, and nobody was told.",
  },
  {
    name: "a token that can't be had again ends in a loss that is told",
    property: "told",
    open: "token",
    play: [
      ask("acquire k 3s wait 0s", "granted"),
      ask("token fails", "ok"),
      until("held? k", "no"),
      until("lost? k", "yes"),
      ask("release k", "lost", "refused"),
    ],
    mistake: "Its heartbeat ended at the exception of the token's function, and nobody was told.",
  },
];

/** A release that is refused is asked again; if it stays refused, its caller is told. */
const RELEASED = Object.entries(FAILURES).flatMap(([what, fate]): readonly Scene[] => [
  {
    name: `a release that meets ${what} is asked again`,
    property: "nothingLeft",
    rules: [{ on: "release", times: 1, fate }],
    play: [ask("acquire k 60s wait 0s", "granted"), ask("release k", "released", "refused"), free("k")],
    mistake: "It took the answer of a gateway for the service's: the key stayed held until the end of its lease.",
  },
]);

const NOTHING_LEFT: readonly Scene[] = [
  {
    name: "a release that is never answered is told",
    property: "nothingLeft",
    rules: [{ on: "release", fate: gateway(503) }],
    play: [ask("acquire k 2s wait 0s", "granted"), ask("release k", "refused", "lost")],
    mistake: "Its release returned as if the key were free.",
  },
  {
    name: "a wait that ends without the key leaves no place in the queue",
    property: "nothingLeft",
    play: [othersHold(), ask("acquire k 60s wait 1s", "busy"), othersRelease, free("k")],
    sent: notCancelled,
    mistake: "A client that sends no DELETE holds up those behind it.",
  },
  {
    name: "a wait that is interrupted leaves no place in the queue",
    property: "nothingLeft",
    play: [othersHold(), begin("acquire k 60s wait 30s"), seen("acquire", 1), INTERRUPT, ends("interrupted"), othersRelease, free("k")],
    sent: notCancelled,
    mistake: "A client that sends no DELETE holds up those behind it.",
  },
  {
    name: "an acquire that is interrupted before its answer leaves no lease",
    property: "nothingLeft",
    rules: [{ on: "acquire", times: 1, fate: { does: "answer-late", byMs: 2000 } }],
    play: [begin("acquire k 60s wait 30s"), pass(700), INTERRUPT, ends("interrupted"), free("k")],
    mistake: "A client that sends no DELETE holds the key until the end of its lease.",
  },
  {
    name: "a closed client holds nothing",
    property: "nothingLeft",
    play: [ask("acquire k 60s wait 0s", "granted"), ask("close", "ok"), free("k"), ask("held? k", "no")],
    mistake: "A client without an end leaves its keys to the ends of their leases.",
  },
];

const WAITS: readonly Scene[] = [
  {
    name: "a wait of a second waits that long",
    property: "waits",
    play: [othersHold(), askSlowly(950, "acquire k 3s wait 1s", "busy")],
    mistake: "A client that waits in whole rounds of the service ends too early.",
  },
  {
    name: "a wait of 0.4 s waits that long",
    property: "waits",
    play: [othersHold(), askSlowly(380, "acquire k 3s wait 0.4s", "busy")],
    mistake: "It asked once and gave up: a wait below a second counted as none.",
  },
  {
    name: "a wait of 0 asks, and takes no place in the queue",
    property: "waits",
    play: [othersHold(), ask("acquire k 3s wait 0s", "busy")],
    sent: (exchanges) =>
      exchanges
        .filter(({ headers }) => headers["prefer"] !== undefined)
        .map(() => "a place in the queue was asked for, by the header Prefer"),
    mistake: "None of those that were tried fails it.",
  },
  {
    name: "a key that is freed during the wait is granted",
    property: "waits",
    play: [
      othersHold(),
      begin("acquire k 3s wait 30s"),
      seen("acquire", 1),
      othersRelease,
      ends("granted"),
      ask("held? k", "yes"),
      ask("release k", "released"),
    ],
    mistake: "None of those that were tried fails it.",
  },
  {
    name: "a process that stood still past the end of its wait, and whose id is forgotten, is granted the free key",
    property: "waits",
    play: [
      ...[othersHold(), begin("acquire k 3s wait 2s"), seen("acquire", 1)],
      freeze(2000, async (service) => {
        // An offer to who stands still lapses after 5 s. Its place is ended here, so that the scene is shorter.
        const [asked] = service.exchanges;
        await service.other("DELETE", `/v1/locks/k/leases/${asked?.leaseId}`);
        await release(service);
        await othersUse(service, 0);
      }),
      ...[ends("granted"), ask("held? k", "yes"), ask("release k", "released"), free("k")],
    ],
    mistake: "It asked under the id of its place alone, and said that the key was held.",
  },
  {
    name: "a full queue is asked again",
    property: "waits",
    rules: [{ on: "acquire", times: 2, fate: problem(429, "queue-full", { retryAfterMs: 200 }) }],
    play: [ask("acquire k 3s wait 10s", "granted"), ask("release k", "released")],
    mistake: "It ended the wait with an error.",
  },
  // The wait is shorter than what the clock is ahead.
  ...[5000, 9900].map((aheadMs): Scene => ({
    name: `a key that was used by a caller whose clock is ${aheadMs / 1000} s ahead is granted`,
    property: "waits",
    play: [
      other((service) => othersUse(service, aheadMs)),
      ...[ask(`acquire k 3s wait ${aheadMs / 2000}s`, "granted"), ask("held? k", "yes"), ask("release k", "released")],
    ],
    mistake: "A client that makes its next id by its own clock alone is refused, lease-over, until that clock has gone so far.",
  })),
  {
    name: "an id that is over is replaced by one above the time that the answer names",
    property: "waits",
    rules: [{ on: "acquire", times: 1, fate: problem(410, "lease-over", { retry: "new-lease", leaseIdAboveMs: Date.now() + 5000 }) }],
    play: [ask("acquire k 3s wait 10s", "granted"), ask("release k", "released")],
    sent: (exchanges) => {
      const [first, second] = exchanges.filter(({ operation }) => operation === "acquire");
      return first?.leaseId === second?.leaseId ? ["the id that was over was sent again"] : [];
    },
    mistake: "It ended the wait with an error, lease-over.",
  },
  {
    name: "a caller whose own clock is 15 s ahead is granted",
    property: "waits",
    play: [ask("clock 15s", "ok"), ask("acquire k 3s wait 10s", "granted"), ask("held? k", "yes"), ask("release k", "released")],
    mistake: "A client that makes each id by its own clock ends the wait with an error, lease-id-time.",
  },
  {
    name: "of eight in a time two start at once, and the third take waits for its start",
    property: "waits",
    play: [
      ...[
        ask("take l 8/8s wait 0s", "taken"),
        ask("take l 8/8s wait 0s", "taken"),
        ask("take l 8/8s wait 0s", "refused rate-limited definite"),
      ],
      askSlowly(500, "take l 8/8s wait 5s", "taken"),
    ],
    mistake: "None of those that were tried fails it.",
  },
  {
    name: "a take that a gateway throttles is asked again",
    property: "waits",
    rules: [{ on: "take", times: 1, fate: gateway(429, "Too Many Requests") }],
    play: [ask("take l 2/2s wait 5s", "taken")],
    mistake: "It ended with an error of the gateway's.",
  },
  ...["a web page", "200 with {}", "a list"].map((what): Scene => ({
    name: `a take that meets ${what} is not taken`,
    property: "believed",
    rules: [{ on: "take", fate: NO_PROOFS[what]! }],
    play: [ask("take l 2/2s wait 0s", "refused")],
    mistake: "It said that it was taken.",
  })),
];

const ONE_REQUEST: readonly Scene[] = [
  {
    name: "an acquire whose answer got lost is one lock",
    property: "oneRequest",
    rules: [{ on: "acquire", times: 2, fate: { does: "cut", carriedOut: true } }],
    play: [ask("acquire k 60s wait 5s", "granted"), ask("held? k", "yes"), ask("release k", "released"), free("k")],
    mistake: "A client that makes a new id for each try meets its own lock.",
  },
  {
    name: "a release whose answer got lost is no loss",
    property: "oneRequest",
    rules: [{ on: "release", times: 1, fate: { does: "cut", carriedOut: true } }],
    play: [ask("acquire k 60s wait 0s", "granted"), ask("release k", "released"), free("k")],
    mistake: "None of those that were tried fails it.",
  },
];

const NO_FORK = { typescript: "A process of Node doesn't fork.", java: "A process of Java doesn't fork." };
const NO_THREADS = {
  typescript: "A lease is an object of its own: who has it holds it.",
  java: "A lock is an object of its own: who has it holds it.",
  asyncio: "Tasks of one thread share a lock object, as in redis-py.",
};

/** Returns a sentence for each release that was sent after those that are right. */
const releasedOnce = (exchanges: readonly Exchange[]): readonly string[] =>
  exchanges
    .filter(({ operation }) => operation === "release")
    .slice(1)
    .map(() => "a release was sent for a hold of another process or thread");

const PROCESSES: readonly Scene[] = [
  {
    name: "a lock isn't held in a child process, and isn't released by it",
    property: "processes",
    cannot: NO_FORK,
    play: [
      ask("acquire k 60s wait 0s", "granted"),
      ...[ask("in_child held? k", "no"), ask("in_child release k", "lost", "refused"), ask("in_child close", "ok")],
      ...[ask("held? k", "yes"), ask("release k", "released"), free("k")],
    ],
    sent: releasedOnce,
    mistake: "Its child believed in the lock, and released it: the parent worked on without.",
  },
  {
    name: "a client that was made before a fork names the child, and holds for it",
    property: "processes",
    cannot: NO_FORK,
    play: [
      ...[
        ask("acquire k 60s wait 0s", "granted"),
        ask("in_child acquire j 2s wait 0s", "granted"),
        ask("in_child acquire k 2s wait 0s", "busy"),
      ],
      ...[ask("held? k", "yes"), ask("release k", "released")],
    ],
    sent: (exchanges) => {
      const owners = new Map(
        exchanges
          .filter(({ operation }) => operation === "acquire")
          .map(({ key, body }) => [key, (body as { readonly owner: string }).owner]),
      );
      const asked = exchanges
        .filter(({ operation }) => operation === "acquire")
        .map(({ body }) => (body as { readonly owner: string }).owner);
      return new Set(asked).size === 3 && owners.size === 2 ? [] : ["two processes have one owner"];
    },
    mistake: "A client that makes its owner at its start names the parent in every child.",
  },
  {
    name: "a lock object that threads share is each thread's own",
    property: "processes",
    cannot: NO_THREADS,
    play: [
      ...[ask("acquire k 60s wait 0s", "granted"), ask("in_thread held? k", "no"), ask("in_thread release k", "refused")],
      ...[ask("held? k", "yes"), ask("release k", "released"), free("k")],
    ],
    sent: releasedOnce,
    mistake: "Any thread released the lock of another, which worked on without.",
  },
];

/** Locks whose work must show progress. Nobody releases one that hangs: it is free when its lease is over. */
const PROGRESS: readonly Scene[] = [
  {
    name: "a lock whose work shows no progress is lost in time, says so, and is renewed no more",
    property: "told",
    play: [
      ...[ask("acquire k 1s wait 0s progress 2s", "granted"), ask("progress k", "yes"), until("held? k", "no"), until("lost? k", "yes")],
      ...[free("k"), ask("progress k", "no"), ask("held? k", "no"), ask("release k", "lost")],
    ],
    mistake: "Its heartbeats went on, and work that hung kept the key for ever.",
  },
  {
    name: "a lock whose work shows progress is kept",
    property: "told",
    play: [
      ask("acquire k 2s wait 0s progress 4s", "granted"),
      ...Array.from({ length: 4 }, () => [pass(1500), ask("progress k", "yes")]).flat(),
      ...[ask("held? k", "yes"), ask("lost? k", "no"), ask("release k", "released"), free("k")],
    ],
    mistake: "It counted from the grant alone, and gave up work that went on.",
  },
];

export const LOCK_SCENES: readonly Scene[] = [
  ...PROCESSES,
  ...PROGRESS,
  ...RENEWED,
  ...GRANTED,
  ...BELIEVED,
  ...RELEASED,
  ...NOTHING_LEFT,
  ...WAITS,
  ...ONE_REQUEST,
];
