/**
 * A caller of the service on one run, over a table behind a proxy that counts: the cost of a whole request, with
 * payloads. The test advances time.
 */
import { systemClock } from "../../../lib/core/time.js";
import type { OutcomeInput, ServiceApi, StartRequest } from "../../../lib/core/api/runs.js";
import { lockService } from "../../../lib/service/service.js";
import type { Address, LockStore } from "../../../lib/store/port.js";
import { VirtualClock } from "../../../lib/testing/virtual-clock.js";
import { freshNamespace, START_MS } from "../fixture.js";

/** A key of typical length. */
const KEY = "checkout-service_ORDER_1231";

/** One run's key and its caller, with a principal in IAM's format. */
export class RunCaller {
  readonly #clock = new VirtualClock(START_MS);
  readonly #api: ServiceApi;
  readonly address: Address = { namespace: freshNamespace(), kind: "runs", key: KEY };

  constructor(store: LockStore) {
    const { namespace } = this.address;
    const caller = { principal: "111122223333/AROAEXAMPLEEXAMPLEEXA", namespace, requestId: "r" };
    const clocks = () => ({ earliestMs: this.#clock.wallMs(), latestMs: this.#clock.wallMs() });
    this.#api = lockService({ store, log: () => undefined, clock: systemClock }, caller, clocks);
  }

  /** Lets `ms` pass. */
  async pass(ms: number): Promise<void> {
    await this.#clock.advance(ms);
  }

  async start(leaseId: string, parts: Partial<StartRequest> = {}) {
    return await this.#api.start({ key: KEY, leaseId, owner: "checkout-7", ...parts });
  }

  async renew(leaseId: string, parts: { readonly checkpoint?: unknown; readonly sequence?: number; readonly leaseMs?: number } = {}) {
    return await this.#api.renew({ kind: "runs", key: KEY, leaseId, ...parts });
  }

  async complete(leaseId: string, outcome: OutcomeInput = { state: "succeeded" }) {
    return await this.#api.complete({ key: KEY, leaseId, outcome });
  }

  async giveUp(leaseId: string) {
    return await this.#api.release({ kind: "runs", key: KEY, leaseId });
  }

  async reset() {
    return await this.#api.resetRun({ key: KEY, reason: "a test" });
  }

  async look() {
    return await this.#api.run({ key: KEY });
  }
}
