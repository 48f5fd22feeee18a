/** The faults that proxies draw from a seed: which there are between whom, and how often each occurs at a time. */
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../simulation/random.js";
import type { Draw, Fault } from "../support/fault-proxy.js";

/** The longest delay of a message, in ms: past every lease of the workers, and its margin. */
const LATE_MS = 6000;
/** The probabilities of a fault that is on. Half of them are off at a time. A hold sends many requests to the engine, and two to the resource. */
const RATES = { engine: [0.003, 0.01, 0.03], service: [0.003, 0.01, 0.05], resource: [0.02, 0.05, 0.15] } as const;

const answer = (status: number, errorName: string, message?: string): Fault => ({
  kind: "answer",
  status,
  errorName,
  ...(message !== undefined && { says: () => ({ message }) }),
});

/** Faults of messages between any client and server. */
const MESSAGES: Readonly<Record<string, (random: Random) => Fault>> = {
  "request lost": () => ({ kind: "lose-request" }),
  "answer lost": () => ({ kind: "lose-reply" }),
  "request twice": (random) => ({ kind: "duplicate", againAfterMs: random.whole(0, LATE_MS) }),
  "late request": (random) => ({ kind: "hold-request", until: delay(random.whole(0, LATE_MS)) }),
  "late answer": (random) => ({ kind: "hold-reply", until: delay(random.whole(0, LATE_MS)) }),
  "500 with effect": () => ({ kind: "answer", carriedOut: true }),
  "500 without effect": () => ({ kind: "answer" }),
};

const EXPIRED = "Signature expired: 20200101T000000Z is now earlier than 20200101T000500Z (20200101T001000Z - 5 min.)";

/** The faults between clients and the service, between its clients and the engine, and between workers and the resource. */
export const PLACES = {
  service: {
    ...MESSAGES,
    "429": () => answer(429, "TooManyRequests"),
    "503": () => answer(503, "ServiceUnavailable"),
    "expired signature": () => answer(403, "InvalidSignatureException", EXPIRED),
  },
  engine: {
    ...MESSAGES,
    ThrottlingException: () => answer(400, "ThrottlingException"),
    ProvisionedThroughputExceededException: () => answer(400, "ProvisionedThroughputExceededException"),
    RequestLimitExceeded: () => answer(400, "RequestLimitExceeded"),
    TransactionConflictException: () => answer(400, "TransactionConflictException"),
    ReplicatedWriteConflictException: () => answer(400, "ReplicatedWriteConflictException"),
    TransactionInProgressException: () => answer(400, "TransactionInProgressException"),
    "expired signature": () => answer(400, "InvalidSignatureException", EXPIRED),
    "expired token": () => answer(400, "ExpiredTokenException"),
  },
  resource: MESSAGES,
} as const satisfies Readonly<Record<string, typeof MESSAGES>>;

/** Faults that are drawn for each request, in a mix that changes. */
export interface DrawnFaults {
  draw(place: keyof typeof PLACES): Draw;
  /** Draws another mix. */
  mix(): void;
  /** No faults from now on. */
  end(): void;
}

/** Creates faults. `count` is told each. */
export function drawnFaults(seed: number, count: (what: string) => void): DrawnFaults {
  const mixes = new Random(seed);
  let rates = new Map<string, number>();
  const draw = (place: keyof typeof PLACES): Draw => {
    const random = new Random(seed + place.length);
    return () => {
      for (const [what, fault] of Object.entries(PLACES[place])) {
        if (!random.chance(rates.get(`${place}: ${what}`) ?? 0)) continue;
        count(`${place}: ${what}`);
        return fault(random);
      }
      return undefined;
    };
  };
  return {
    draw,
    mix() {
      rates = new Map();
      for (const place of ["engine", "service", "resource"] as const)
        for (const what of Object.keys(PLACES[place]))
          if (mixes.chance(0.5)) rates.set(`${place}: ${what}`, mixes.pick<number>(RATES[place]));
    },
    end: () => rates.clear(),
  };
}
