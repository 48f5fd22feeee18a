/** Scenes of a run: done work isn't done twice, and work begins under a lease that is sure. */
import { FAILURES } from "./fates.js";
import { type Scene, ask, seen, until } from "./scene.js";

const RECORDED: readonly Scene[] = [
  ...Object.entries({ ...FAILURES, "a connection that is cut after it was recorded": { does: "cut", carriedOut: true } as const }).map(
    ([what, fate]): Scene => ({
      name: `an outcome that meets ${what} is recorded`,
      property: "once",
      rules: [{ on: "complete", times: 1, fate }],
      play: [
        ask("run_once r 10s wait 0s", "began 1 yes"),
        ask('return r {"a":1}', 'result {"a":1}'),
        ask("run_once r 10s wait 0s", 'result {"a":1}'),
      ],
      mistake: "A refusal of a gateway ended the recording: the next call did the work again.",
    }),
  ),
  ...["a gateway's 403", "a gateway's 404", "a gateway's 429", "a gateway's 503", "a cut connection"].map((what): Scene => ({
    name: `an outcome that meets ${what} until its lease is over is told, and tried as long`,
    property: "once",
    rules: [{ on: "complete", fate: FAILURES[what]! }],
    play: [ask("run_once r 3s wait 0s", "began 1 yes"), ask('return r {"a":1}', "refused", "lost"), seen("complete", 3)],
    mistake: "It tried once.",
  })),
  ...["unkeepable", "large"].map((what): Scene => ({
    name: `a result that can't be kept (${what}) ends its run all the same`,
    property: "once",
    play: [
      ask("run_once r 10s wait 0s", "began 1 yes"),
      ask(`return r as ${what}`, "refused result-omitted"),
      ask("run_once r 10s wait 0s", "refused result-omitted"),
    ],
    mistake: "It recorded nothing, or a failure: each call did the work again.",
  })),
  {
    name: "work that returns before it is done is refused, and is done by the next caller",
    property: "once",
    play: [
      ...[ask("run_once r 60s wait 0s", "began 1 yes"), ask("return r as unfinished", "refused invalid-request definite")],
      ...[ask("run_once r 60s wait 0s", "began 2 yes"), ask("return r 2", "result 2")],
    ],
    mistake: "It recorded a generator as a result that can't be kept: the work was never done, and no caller did it again.",
  },
  {
    name: "work that failed is done again by the next caller, at once",
    property: "once",
    rules: [{ on: "complete", times: 1, fate: FAILURES["a gateway's 429"]! }],
    play: [
      ...[ask("run_once r 60s wait 0s", "began 1 yes"), ask("throw r again", "failed"), ask("run_once r 60s wait 0s", "began 2 yes")],
      ...[ask("return r 2", "result 2"), ask("run_once r 60s wait 0s", "result 2")],
    ],
    mistake: "Its refused record left the run to the end of its lease.",
  },
  {
    name: "a final failure is every caller's",
    property: "once",
    play: [ask("run_once r 10s wait 0s", "began 1 yes"), ask("throw r final", "failed"), ask("run_once r 10s wait 0s", "failed")],
    mistake: "None of those that were tried fails it.",
  },
  {
    name: "another payload under the same key is refused",
    property: "once",
    play: [
      ...[ask('run_once r 10s wait 0s payload {"a":1,"b":2}', "began 1 yes"), ask("return r 1", "result 1")],
      ...[ask('run_once r 10s wait 0s payload {"b":2,"a":1}', "result 1")],
      ask('run_once r 10s wait 0s payload {"a":2}', "refused fingerprint-mismatch definite"),
    ],
    mistake: "None of those that were tried fails it.",
  },
];

const BEGUN: readonly Scene[] = [
  ...(["hold", "answer-late"] as const).map((how): Scene => ({
    name: `work begins under a lease that is sure, when its start ${how === "hold" ? "was held by the service" : "was answered late"} for as long as its lease`,
    property: "counted",
    rules: [{ on: "start", times: 1, fate: how === "hold" ? { does: how, forMs: 3000 } : { does: how, byMs: 2900 } }],
    play: [ask("run_once r 3s wait 20s", "began 1 yes", "began 2 yes"), ask("held? r", "yes"), ask("return r 1", "result 1")],
    mistake: "Its work began with a lease that was not held: two worked at once for 3.9 s.",
  })),
  {
    name: "a start whose answer got lost is one attempt",
    property: "oneRequest",
    rules: [{ on: "start", times: 2, fate: { does: "cut", carriedOut: true } }],
    play: [ask("run_once r 60s wait 5s", "began 1 yes"), ask("return r 1", "result 1")],
    mistake: "A client that makes a new id for each try meets its own run.",
  },
  {
    name: "the work of a run is told of a loss",
    property: "told",
    rules: [{ on: "renewRun", fate: FAILURES["what is no HTTP"]! }],
    play: [ask("run_once r 3s wait 0s", "began 1 yes"), until("held? r", "no"), until("lost? r", "yes")],
    mistake: "Its heartbeat ended without a word.",
  },
];

/** Late for the next checkpoint, and soon enough for the lease. */
const LATE = { does: "answer", answer: { status: 504 }, carriedOutAfterMs: 1500 } as const;

const SAVED: readonly Scene[] = [
  {
    name: "a checkpoint that arrives late undoes no later one",
    property: "saved",
    rules: [{ on: "renewRun", times: 1, fate: LATE }],
    play: [
      ...[ask("run_once r 60s wait 0s", "began 1 yes"), ask('checkpoint r "page 1"', "saved"), ask('checkpoint r "page 2"', "saved")],
      ...[seen("renewRun", 3), ask("throw r again", "failed")],
      ...[ask("run_once r 60s wait 0s", "began 2 yes"), ask("checkpoint? r", 'checkpoint "page 2"'), ask("return r 1", "result 1")],
    ],
    mistake: "It sent no sequence: the next attempt began at page 1.",
  },
  {
    name: "a checkpoint after the loss is told as a loss, and isn't sent",
    property: "saved",
    rules: [{ on: "renewRun", fate: FAILURES["what is no HTTP"]! }],
    play: [...[ask("run_once r 3s wait 0s", "began 1 yes"), until("lost? r", "yes"), ask("checkpoint r 1", "lost")]],
    sent: (exchanges) => exchanges.flatMap(({ body }) => (isCheckpoint(body) ? ["it sent the checkpoint"] : [])),
    mistake: "It sent it, and a service that answers again renewed the lost lease.",
  },
];

function isCheckpoint(body: unknown): boolean {
  return typeof body === "object" && body !== null && "checkpoint" in body;
}

export const RUN_SCENES: readonly Scene[] = [...RECORDED, ...BEGUN, ...SAVED];
