/** An SDK whose exporters keep spans and metrics in memory, and the spans' contexts on asynchronous chains. */
import { type Attributes, context } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import type { Histogram } from "@opentelemetry/sdk-metrics";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { type ReadableSpan, BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll } from "vitest";

/** A point of a metric: its sum, for a duration also how many there were. */
export interface Point {
  readonly attributes: Attributes;
  readonly sum: number;
  readonly count?: number;
}

/** Providers whose spans and metrics a test reads. */
export class Exported {
  readonly #spans = new InMemorySpanExporter();
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
    exportIntervalMillis: 3_600_000,
  });
  readonly tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#spans)] });
  readonly meterProvider = new MeterProvider({ readers: [this.#reader] });

  /** The spans that ended, in the order of their ends. */
  get spans(): readonly ReadableSpan[] {
    return this.#spans.getFinishedSpans();
  }

  /** The spans of this name that ended. */
  of(name: string): readonly ReadableSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** The spans that ended, each as its path from the root. */
  get paths(): readonly string[] {
    const byId = new Map(this.spans.map((span) => [span.spanContext().spanId, span]));
    const path = (span: ReadableSpan): string => {
      const parent = byId.get(span.parentSpanContext?.spanId ?? "");
      return `${parent ? `${path(parent)} > ` : ""}${span.name}`;
    };
    return this.spans.map(path).sort();
  }

  /** The points of a metric. */
  async points(name: string): Promise<readonly Point[]> {
    return (await this.metrics()).filter((one) => one.name === name).flatMap(({ points }) => points);
  }

  /** All metrics as they are now. */
  async metrics(): Promise<readonly { readonly name: string; readonly unit: string; readonly points: readonly Point[] }[]> {
    // Read and not exported: that would take the reader's own timers, and a test's clock stands still.
    const { resourceMetrics } = await this.#reader.collect();
    const found = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
    return found.map(({ descriptor: { name, unit }, dataPoints }) => ({
      name,
      unit,
      points: dataPoints.map(({ attributes, value }) => {
        if (typeof value === "number") return { attributes, sum: value };
        const { sum = 0, count } = value as Histogram;
        return { attributes, sum, count };
      }),
    }));
  }

  /** Runs `work` below a span of the caller's own. */
  below<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.tracerProvider.getTracer("app").startActiveSpan(name, (span) => work().finally(() => span.end()));
  }

  async shutdown(): Promise<void> {
    await this.meterProvider.shutdown();
    await this.tracerProvider.shutdown();
  }
}

/** Keeps contexts on asynchronous chains while the tests of a file run, as every SDK for Node does. */
export function withContexts(): void {
  const manager = new AsyncLocalStorageContextManager();
  beforeAll(() => void context.setGlobalContextManager(manager.enable()));
  afterAll(() => context.disable());
}
