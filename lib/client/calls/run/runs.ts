/** Inspects and operates runs: reads a run, lists runs, resets a run. */
import type { RunView } from "../../../core/lock/views.js";
import { type Session, orNothing } from "../session.js";
import { PAGE } from "../options.js";
import { CHECKS, checkOptions, oneOf } from "../../wire/checks.js";
import { errorFromJson, fromJson } from "./json-codec.js";

/** The state of a run, with its result, error and checkpoint as JavaScript values. */
export type RunInspection = Omit<RunView, "error"> & { readonly error?: Error };

/** The runs of one application. */
export interface Runs {
  /** Returns the state of the run; null if it never ran or is forgotten. */
  get(key: string): Promise<RunInspection | null>;
  /**
   * Lists runs in the order of their keys, without their values, one page at a time. A page can be short, or even empty, without being the
   * last.
   */
  list(options?: {
    readonly prefix?: string | undefined;
    readonly state?: RunView["state"] | undefined;
    readonly max?: number | undefined;
    readonly cursor?: string | undefined;
  }): Promise<{ readonly items: readonly RunInspection[]; readonly cursor?: string }>;
  /**
   * Forgets a run that is over or was abandoned: the next start is a first attempt. The reason is logged. With the `fencingToken` that `get`
   * told, a repeated reset never forgets a run that began since.
   * @throws LockError `run-in-progress` while it is running, `not-found` if it never ran, `other-hold` if the latest run has another token.
   */
  reset(key: string, options: { readonly reason: string; readonly fencingToken?: number | undefined }): Promise<void>;
}

const STATES: readonly RunView["state"][] = ["running", "interrupted", "succeeded", "failed"];
const RESET_OPTIONS = { reason: CHECKS.reason, fencingToken: CHECKS.fencingToken };
const LIST_OPTIONS = { ...PAGE, state: oneOf(...STATES) };

/** Returns the calls for the runs of the session's client. */
export function runsOf(session: Session): Runs {
  const { api } = session.deps;
  return {
    async get(name) {
      const key = session.keyOf(name);
      const found = await session.read(`run ${key}`, async (call) => orNothing(await api.run({ key }, call)));
      return "run" in found ? inspectionOf(found.run) : null;
    },

    async list(options = {}) {
      const { items, cursor } = await session.page("runs.list", options, LIST_OPTIONS, (query, call) => api.runs(query, call));
      return { items: items.map(inspectionOf), ...(cursor !== undefined && { cursor }) };
    },

    async reset(name, options: Parameters<Runs["reset"]>[1] = { reason: "" }) {
      const key = session.keyOf(name);
      checkOptions("runs.reset", options, RESET_OPTIONS, "reason");
      await session.carryOut(`reset ${key}`, (call) => api.resetRun({ key, ...options }, call));
    },
  };
}

function inspectionOf({ error, result, checkpoint, ...rest }: RunView): RunInspection {
  return {
    ...rest,
    ...(checkpoint !== undefined && { checkpoint: fromJson(checkpoint) }),
    ...(result !== undefined && { result: fromJson(result) }),
    ...(error !== undefined && { error: errorFromJson(error) }),
  };
}
