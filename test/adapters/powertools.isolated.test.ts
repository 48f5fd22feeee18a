/** Powertools' logger and tracer around a handler under a lock whose client is traced: each does what it does alone. */
import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { Tracer } from "@aws-lambda-powertools/tracer";
import { captureLambdaHandler } from "@aws-lambda-powertools/tracer/middleware";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { getNamespace, Segment, setSegment } from "aws-xray-sdk-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Lease } from "../../lib/index.js";
import { lockMiddleware } from "../../lib/middy.js";
import { traced } from "../../lib/otel.js";
import { createHarness } from "../client/harness.js";
import { Exported, withContexts } from "../otel/exporters.js";
import { SCHEDULED } from "./events.js";
import { invocation } from "../support/invocation.js";

const KEY = "nightly-report";
/** The environment of a function, as Powertools knows it by. */
const LAMBDA = {
  AWS_EXECUTION_ENV: "AWS_Lambda_nodejs20.x",
  POWERTOOLS_SERVICE_NAME: "reports",
  _HANDLER: "index.handler",
};

withContexts();
let exported: Exported;
beforeEach(() => {
  exported = new Exported();
  for (const [name, value] of Object.entries(LAMBDA)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await exported.shutdown();
});

/** Runs the handler as Lambda does, in a segment, and returns what was logged, and the segment. */
async function handled(end: () => Promise<string> | string, isLocked: boolean): Promise<{ lines: readonly object[]; segment: Segment }> {
  const { clock, locks } = createHarness();
  const [logger, tracer] = [new Logger(), new Tracer()];
  const said = vi.spyOn((logger as unknown as { readonly console: Console }).console, "info").mockReturnValue();
  const { tracerProvider, meterProvider } = exported;
  const handler = middy().use(injectLambdaContext(logger)).use(captureLambdaHandler(tracer));
  if (isLocked) handler.use(lockMiddleware({ locks: traced(locks, { tracerProvider, meterProvider }), key: () => KEY }));
  handler.handler(async (_event: unknown, context: Context) => {
    const { lease } = context as Context & { readonly lease?: Lease };
    logger.info("begins", { isLocked: lease?.key === KEY });
    tracer.putAnnotation("report", "nightly");
    return end();
  });
  const context = { ...invocation(clock), awsRequestId: "request-7" } as unknown as Context;
  const segment = new Segment("reports");
  await getNamespace().runPromise(async () => {
    setSegment(segment);
    await clock.settle((handler(SCHEDULED, context) as Promise<unknown>).catch(() => undefined));
  });
  return { lines: said.mock.calls.map(([line]) => JSON.parse(String(line)) as object), segment };
}

describe("Powertools around a handler under a lock", () => {
  it.each([
    ["returns", () => "done", undefined],
    ["throws", () => Promise.reject(new RangeError("no data")), "RangeError"],
  ])("logs and traces what it does without the lock, if the handler %s", async (_how, end, type) => {
    interface Traced {
      readonly name: string;
      readonly annotations?: object;
      readonly fault?: boolean;
    }
    const subsegments = ({ subsegments: all = [] }: Segment) =>
      (all as readonly Traced[]).map(({ name, annotations, fault = false }) => ({ name, annotations, fault }));
    const alone = await handled(end, false);
    expect(exported.paths).toEqual([]);
    const locked = await handled(end, true);
    expect(exported.paths).toEqual(["holdfast.acquire", "holdfast.lock"]);
    expect(exported.of("holdfast.lock")[0]!.attributes["error.type"]).toBe(type);
    expect(alone.lines).toMatchObject([{ message: "begins", function_request_id: "request-7", service: "reports", isLocked: false }]);
    expect(locked.lines).toMatchObject([{ message: "begins", function_request_id: "request-7", service: "reports", isLocked: true }]);
    expect(subsegments(alone.segment)).toMatchObject([{ name: "## index.handler", fault: type !== undefined }]);
    expect(subsegments(locked.segment)).toEqual(subsegments(alone.segment));
  });
});
