/**
 * The operations of several services of one table, the first that answers. A client of one URL never loads this file, nor failover.ts
 * (decision 103).
 */
import { type Call, callOf } from "../../core/api/call.js";
import { randomNumber } from "../../core/random.js";
import { systemClock } from "../../core/time.js";
import { type LockClientEvent, emitQuietly } from "./events.js";
import { failover } from "./failover.js";
import { httpApi } from "./http.js";
import type { HttpOptions } from "./http-options.js";
import type { Way } from "./ways.js";

interface DoorsOptions extends Omit<HttpOptions, "url"> {
  readonly onEvent?: ((event: LockClientEvent) => unknown) | undefined;
}

/** Returns the way to the service at `options.url`. */
export function serviceAt(options: HttpOptions): Way {
  const api = httpApi(options);
  return { kind: "service", door: options.url, open: () => api };
}

/** Returns the call of the services at `urls`. Nothing is sent before it is used. */
export function servicesAt(urls: readonly string[], { onEvent, ...options }: DoorsOptions): Call {
  const { api } = failover({
    ...{ via: "service", clock: systemClock, random: randomNumber },
    emit: (event) => void emitQuietly(onEvent, event),
    ways: urls.map((url) => serviceAt({ ...options, url })),
    // No table is used directly, so nothing is expected of the first service's answer.
    ...{ own: { namespace: "", principal: "", format: 0, clockErrorMs: 0, retentionMs: 0 }, configured: [] },
  });
  return callOf(api);
}
