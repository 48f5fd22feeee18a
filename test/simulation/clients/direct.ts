/**
 * A direct client of the table, assembled as `holdfast/dynamodb` does it. The service runs in the client's own process, by its clock and
 * the table's. The oracle sees each request and answer, as it does on the network.
 */
import { createClient } from "../../../lib/client/client.js";
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import type { Held, Waiting } from "../../../lib/core/commands.js";
import { type Refusal, ERRORS } from "../../../lib/core/errors.js";
import { LIMITS } from "../../../lib/core/limits.js";
import type { Replayed, ServiceApi, Started } from "../../../lib/core/api/runs.js";
import { tableClocks } from "../../../lib/service/clocks.js";
import { lockService } from "../../../lib/service/service.js";
import { watchTableClock } from "../../../lib/store/dynamo/table-clock.js";
import type { Door } from "../../../lib/testing/regions.js";
import { NAMESPACE } from "../backend.js";
import type { DynamoBackend } from "../dynamo-backend.js";
import type { Oracle } from "../oracles/oracle.js";
import type { Random } from "../random.js";
import type { Actor } from "../stage.js";

/** A lock client in the actor's process, directly on the table, without a remote service. */
export function directClient(
  backend: DynamoBackend,
  { process, watch }: Pick<Actor, "process" | "watch">,
  random: Random,
  oracle: Oracle,
  door?: Door,
): LockClient {
  const { client, store } = backend.clientFor(process, door);
  const caller = { principal: `${NAMESPACE}/direct`, namespace: NAMESPACE, requestId: "direct" };
  const clocks = tableClocks(process, watchTableClock(client, process));
  const api = watch.around(heard(lockService({ store, log: () => undefined, clock: process, exposeCause: true }, caller, clocks), oracle));
  return createClient({ api, clock: process, random: () => random.unit(), ids: new LeaseIds(process, (count) => random.bytes(count)) });
}

/** The operations. The oracle sees each request and each answer. */
// Over 60 lines: one model or one server, whose parts share its state.
function heard(api: ServiceApi, oracle: Oracle): ServiceApi {
  const { asked, queues, runs } = oracle;
  const acquired = (key: string, answer: Held | Waiting | Refusal): void => {
    if (answer.ok && "lease" in answer) oracle.toldCount(key, answer.lease);
  };
  return {
    ...api,
    async acquire(request, options) {
      const { key, leaseId, priority = 0, waitMs = 0 } = request;
      asked.add("acquire", leaseId);
      queues.asked(leaseId, priority);
      const visited = queues.visiting(leaseId, Math.min(waitMs, LIMITS.serverWaitMs));
      const answer = await api.acquire(request, options);
      visited(answer.ok && "state" in answer ? { ...answer, byLook: false } : undefined);
      acquired(key, answer);
      return answer;
    },
    async check(request, options) {
      const visited = queues.visiting(request.leaseId, 0);
      const answer = await api.check(request, options);
      visited(answer.ok && "state" in answer ? { ...answer, byLook: true } : undefined);
      return answer;
    },
    renew(request, options) {
      asked.add("renew", request.leaseId);
      if (request.kind === "runs" && request.checkpoint !== undefined) runs.asked.save(request.leaseId, request.checkpoint);
      return api.renew(request, options);
    },
    renewMany(request, options) {
      for (const { leaseId } of request.leases) asked.add("renew", leaseId);
      return api.renewMany(request, options);
    },
    renewSet(request, options) {
      asked.add("renew", request.leaseId);
      return api.renewSet(request, options);
    },
    release(request, options) {
      asked.add("release", request.leaseId);
      return api.release(request, options);
    },
    releaseSet(request, options) {
      asked.add("release", request.leaseId);
      return api.releaseSet(request, options);
    },
    changeMode(request, options) {
      asked.change(request.leaseId, request.mode, request.fencingToken);
      return api.changeMode(request, options);
    },
    transfer(request, options) {
      asked.add("transfer", request.leaseId);
      asked.handOn(request.to.leaseId);
      return api.transfer(request, options);
    },
    async acquireSet(request, options) {
      asked.set(request.leaseId, [...new Set(request.locks.map(({ key }) => key))]);
      const answer = await api.acquireSet(request, options);
      if (!answer.ok && answer.code === "locked") oracle.coverage.setsBlocked++;
      return answer;
    },
    async take(request, options) {
      const answer = await api.take(request, options);
      if (answer.ok) oracle.limits.granted(request.key, request.cost ?? 1, answer.startInMs);
      else if (answer.code === "rate-limited") oracle.limits.refused();
      return answer;
    },
    async shutLimit(request, options) {
      const answer = await api.shutLimit(request, options);
      if (answer.ok) oracle.limits.shut(request.key, request.forMs);
      return answer;
    },
    async start(request, options) {
      const { key, leaseId } = request;
      const atMs = oracle.now();
      asked.add("acquire", leaseId);
      runs.asked.start(leaseId, { ...request });
      const answer = await api.start(request, options);
      runs.answeredStart(key, leaseId, { atMs, statusCode: answer.ok ? 200 : ERRORS[answer.code].status, answer: flat(answer) });
      return answer;
    },
    async complete(request, options) {
      const { key, leaseId, outcome } = request;
      asked.add("release", leaseId);
      const said = runs.asked.outcome(leaseId, { ...outcome });
      const answer = await api.complete(request, options);
      runs.answeredOutcome(key, leaseId, said, answer.ok ? 200 : ERRORS[answer.code].status, false);
      return answer;
    },
    async resetRun(request, options) {
      const done = runs.asked.reset(request.key);
      const answer = await api.resetRun(request, options);
      // A failed one may still take effect.
      if (answer.ok || answer.definite) done();
      return answer;
    },
  };
}

/** The answer to a start in its wire form. */
function flat(answer: Started | Replayed | Refusal): Readonly<Record<string, unknown>> {
  return "lease" in answer ? { ...answer, fencingToken: answer.lease.fencingToken } : { ...answer };
}
