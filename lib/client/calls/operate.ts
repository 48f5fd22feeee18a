/** The operators' calls: inspect a key, list held keys and limits, end a hold by force, and check the service's health. */
import type { Inspected } from "../../core/api/locks.js";
import * as LIMITS from "../../core/request-limits.js";
import type { LockClient } from "./lock-client.js";
import { PAGE } from "./options.js";
import { type Checks, CHECKS, checkOptions, ms, refused } from "../wire/checks.js";
import type { Session } from "./session.js";

const LIST_OPTIONS = { ...PAGE, owner: CHECKS.owner };
const BREAK_OPTIONS: Checks<Parameters<LockClient["forceRelease"]>[1]> = {
  reason: CHECKS.reason,
  fencingToken: CHECKS.fencingToken,
  drainMs: ms(0, LIMITS.drainMaxMs),
};

/** Returns the calls of `session` that read locks and limits, and end other holders' leases. */
export function operatorCalls(session: Session): Pick<LockClient, "inspect" | "list" | "limits" | "forceRelease" | "health" | "use"> {
  const { api, use } = session.deps;
  return {
    async inspect(name) {
      const key = session.keyOf(name);
      const found = await session.read(`inspect ${key}`, (call) => api.inspect({ key }, call));
      // Only a look on a condition is answered `unchanged`.
      return (found as Extract<Inspected, { readonly inspection: unknown }>).inspection;
    },

    list: (options = {}) => session.page("list", options, LIST_OPTIONS, (query, call) => api.list(query, call)),

    limits: {
      async reset(name, options: { readonly reason: string } = { reason: "" }) {
        const key = session.keyOf(name);
        checkOptions("limits.reset", options, { reason: CHECKS.reason }, "reason");
        await session.carryOut(`reset ${key}`, (call) => api.resetLimit({ key, reason: options.reason }, call));
        session.deps.refusedTakes.forget(key);
      },
      list: (options = {}) => session.page("limits.list", options, PAGE, (query, call) => api.limits(query, call)),
    },

    async forceRelease(name, options) {
      const key = session.keyOf(name);
      checkOptions("forceRelease", options, BREAK_OPTIONS, "reason", "fencingToken");
      const { breakInMs } = await session.carryOut(`forceRelease ${key}`, (call) => api.breakHold({ key, ...options }, call));
      return { breakInMs };
    },

    async health() {
      const { ok: _ok, ...health } = await session.read("health", (call) => api.health({}, call));
      return health;
    },

    async use(via) {
      if (!use) throw refused("via", via, "this client has one way");
      return use(via);
    },
  };
}
