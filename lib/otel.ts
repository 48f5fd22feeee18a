/**
 * `holdfast/otel`: spans and metrics of OpenTelemetry for a client. It needs `@opentelemetry/api` alone, and does nothing until the
 * application sets up an SDK.
 */
export type { TracedOptions } from "./otel/telemetry.js";
export { traced } from "./otel/traced.js";
