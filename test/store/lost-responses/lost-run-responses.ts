/** Operations on runs whose responses are lost: a start must still report that it runs, and an outcome that it is recorded. */
import { decided, fast, rowsOn } from "./lost-rows.js";
import { RunScene, small } from "../run-fixture.js";
import { A, B, C, LEASE_MS, MARGIN_MS } from "../fixture.js";

/** With a lease of the default length, which a heartbeat's fast path assumes. */
const runs = (run: RunScene): Promise<unknown> => run.start(A, { leaseMs: 30_000 });
const failed = async (run: RunScene): Promise<unknown> => (await run.start(A), await run.complete(A, "retry"), run.at(1));
const at = (ms: number) => async (run: RunScene): Promise<unknown> => (await run.start(A), run.at(ms)); // prettier-ignore
const RESULT = { payload: small('"paid"') };

/** Operations on runs. */
export const ROWS = rowsOn(RunScene, [
  { operation: "start a new run", act: (run) => run.start(A), write: fast, outcome: "replayed", otherwise: "granted" },
  {
    operation: "start again after a failure",
    before: failed,
    act: (run) => run.start(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "start as a takeover",
    before: at(LEASE_MS + MARGIN_MS),
    act: (run) => run.start(B),
    write: decided,
    outcome: "replayed",
    otherwise: "granted",
  },
  {
    operation: "a heartbeat",
    before: runs,
    act: (run) => run.at(9).renew(A),
    write: fast,
    outcome: "renewed",
    extends: "each time",
  },
  {
    operation: "a heartbeat with a checkpoint",
    before: runs,
    act: (run) => run.at(9).save(A, small("2")),
    write: fast,
    outcome: "renewed",
    extends: "each time",
  },
  {
    operation: "a heartbeat as decided",
    before: at(9),
    act: (run) => run.save(A, small("2")),
    write: decided,
    outcome: "renewed",
    extends: "once more",
  },
  ...(["succeeded", "failed", "retry"] as const).map((state) => ({
    operation: `record that it ${state}`,
    before: runs,
    act: (run: RunScene) => run.at(9).complete(A, state, RESULT),
    write: fast,
    outcome: "replayed",
    otherwise: "recorded",
  })),
  {
    operation: "record that its result is left out",
    before: runs,
    act: (run) => run.complete(A, "succeeded", { omitted: true }),
    write: fast,
    outcome: "replayed",
    otherwise: "recorded",
  },
  {
    operation: "record past its lease",
    before: at(LEASE_MS + MARGIN_MS),
    act: (run) => run.complete(A, "succeeded", RESULT),
    write: decided,
    outcome: "replayed",
    otherwise: "recorded",
  },
  { operation: "give up a run", before: runs, act: (run) => run.release(A), write: decided, outcome: "released" },
  { operation: "give up a run past its lease", before: at(LEASE_MS), act: (run) => run.release(A), write: decided, outcome: "expired" },
  { operation: "give up a run that never came", act: (run) => run.release(A), write: decided, outcome: "never" },
  { operation: "give up while another runs", before: runs, act: (run) => run.release(C), write: decided, outcome: "never" },
  { operation: "reset", before: failed, act: (run) => run.reset(), write: decided, outcome: "reset" },
  { operation: "reset what fell silent", before: at(LEASE_MS + MARGIN_MS), act: (run) => run.reset(), write: decided, outcome: "reset" },
]);
