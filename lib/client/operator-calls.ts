/** The operators' calls: inspect a key, list held keys, end a hold by force, and check the service's health. */
import type { Inspected } from "../core/api/locks.js";
import * as LIMITS from "../core/request-limits.js";
import type { LockClient } from "./lock-client.js";
import { checkMs, checkNames, checkPage, checkText, refused } from "./options.js";
import type { Session } from "./session.js";

/** Returns the calls of `session` that read locks and end other holders' leases. */
export function operatorCalls(session: Session): Pick<LockClient, "inspect" | "list" | "forceRelease" | "health" | "use"> {
  const { api, use } = session.deps;
  const { prefix = "" } = session.options;

  return {
    async inspect(name) {
      const key = session.keyOf(name);
      const found = await session.ask(`inspect ${key}`, (attempt) => api.inspect({ key }, attempt));
      // Only a look on a condition is answered `unchanged`.
      return (found as Extract<Inspected, { readonly inspection: unknown }>).inspection;
    },

    async list(options = {}) {
      checkNames("list", options, ["prefix", "owner", "max", "cursor"]);
      checkPage(options);
      const { prefix: within = "", ...query } = options;
      const { ok: _ok, ...listed } = await session.ask("list", (attempt) => api.list({ prefix: prefix + within, ...query }, attempt));
      return listed;
    },

    async forceRelease(name, options) {
      const key = session.keyOf(name);
      checkNames("forceRelease", options, ["reason", "fencingToken", "drainMs"]);
      const { reason, fencingToken, drainMs } = options;
      checkMs("drainMs", drainMs, 0, LIMITS.drainMaxMs);
      checkText("reason", reason, 1, LIMITS.reasonChars);
      if (!Number.isSafeInteger(fencingToken) || fencingToken < 0)
        throw refused("fencingToken", fencingToken, "it must be the hold's token");
      const { breakInMs } = await session.ask(`forceRelease ${key}`, (attempt) =>
        api.breakHold({ key, reason, fencingToken, drainMs }, attempt),
      );
      return { breakInMs };
    },

    async health() {
      const { ok: _ok, ...health } = await session.ask("health", (attempt) => api.health({}, attempt));
      return health;
    },

    async use(via) {
      if (!use) throw refused("via", via, "this client has one way");
      return use(via);
    },
  };
}
