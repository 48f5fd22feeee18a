/** The operations on limits: they fill in defaults, and send one request each. */
import type { LimitApi } from "../core/api/limits.js";
import { refuse } from "../core/errors.js";
import { DEFAULTS } from "../core/limits.js";
import { given } from "../core/members.js";
import { refuseRates, viewOfLimit, withBurst } from "../core/rate.js";
import { neverBack } from "./clocks.js";
import type { RequestContext } from "./request-context.js";

/** Makes the operations on limits. */
export function limitOperations(context: RequestContext): LimitApi {
  const { store, caller } = context;
  const { namespace } = caller;
  const clocks = neverBack(context.clocks);
  return {
    take: async ({ key, rates, cost = 1, waitMs = 0 }) => {
      const take = { rates: rates.map(withBurst), cost, waitMs };
      const request = { key, kind: "limits", take } as const;
      const impossible = refuseRates(take);
      if (impossible) return context.refused(request, impossible);
      return context.carryOut(request, async () => {
        const answer = await store.limits.take({ namespace, key }, take, clocks);
        if (!answer.ok) return context.refused(request, answer);
        context.logTake(request, answer.startInMs);
        return answer;
      });
    },
    shutLimit: ({ key, rates, forMs, reason }) => {
      const shut = { rates: rates.map(withBurst), forMs };
      const request = { key, kind: "limits" } as const;
      const impossible = refuseRates({ ...shut, cost: 1 });
      if (impossible) return Promise.resolve(context.refused(request, impossible));
      return context.carryOut(request, async () => {
        const answer = await store.limits.shut({ namespace, key }, shut, clocks);
        if (!answer.ok) return context.refused(request, answer);
        context.logShut(request, answer.startInMs, reason);
        return answer;
      });
    },
    limit: ({ key }) =>
      context.carryOut({ key, kind: "limits" }, async () => {
        const record = await store.limits.read({ namespace, key });
        if (!record) return refuse("not-found", { detail: `Nothing was taken from ${key}, or it is long full again` });
        return { ok: true, limit: viewOfLimit(key, record, clocks()) };
      }),
    resetLimit: ({ key, reason }) => {
      const request = { key, kind: "limits" } as const;
      return context.carryOut(request, async () => {
        if (!(await store.limits.reset({ namespace, key })))
          return context.refused(request, refuse("not-found", { detail: `Nothing was taken from ${key}, or it is long full again` }));
        context.logReset(request, reason);
        return { ok: true };
      });
    },
    limits: ({ prefix = "", max = DEFAULTS.listMax, cursor: after = "" }) =>
      context.carryOut({ kind: "limits" }, async () => {
        const reading = clocks();
        const page = await store.limits.list({ namespace, prefix, after, max, fullAfterMs: reading.earliestMs });
        const items = page.items.map(({ key, record }) => viewOfLimit(key, record, reading));
        return { ok: true, items, ...given({ cursor: page.next }) };
      }),
  };
}
