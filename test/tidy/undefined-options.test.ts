/** Every option that may be left out may be undefined too, under `exactOptionalPropertyTypes`: `{ url: process.env.LOCKS_URL }`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type * as Cdk from "../../infra/index.js";
import type * as StepFunctions from "../../infra/step-functions.js";
import type * as CronEntry from "../../lib/cron.js";
import type * as Table from "../../lib/dynamodb.js";
import type * as Durable from "../../lib/durable.js";
import type * as Hono from "../../lib/hono.js";
import type * as Middy from "../../lib/middy.js";
import type * as Nest from "../../lib/nest.js";
import type * as Otel from "../../lib/otel.js";
import type * as Sigv4 from "../../lib/sigv4.js";
import type * as Testing from "../../lib/testing.js";
import { ROOT } from "./tree.js";

/** The same options, where each that may be left out may be undefined. */
type Loose<Options> = { [Name in keyof Options]: object extends Pick<Options, Name> ? Options[Name] | undefined : Options[Name] };
type Takes<Options> = Loose<Options> extends Options ? true : false;

/** Controls: options that are so, and others. */
export const CONTROLS = [true satisfies Takes<{ url?: string | undefined }>, false satisfies Takes<{ url?: string }>];

const TAKES = {
  AcquireOptions: true satisfies Takes<Table.AcquireOptions>,
  BatchOptions: true satisfies Takes<Table.BatchOptions<never>>,
  ClientOptions: true satisfies Takes<Table.ClientOptions>,
  CloseOptions: true satisfies Takes<Table.CloseOptions>,
  DynamoClientOptions: true satisfies Takes<Table.DynamoClientOptions>,
  DurableLockOptions: true satisfies Takes<Durable.DurableLockOptions>,
  DurableRunOptions: true satisfies Takes<Durable.DurableRunOptions>,
  ElectOptions: true satisfies Takes<Table.ElectOptions>,
  HttpClientOptions: true satisfies Takes<Table.HttpClientOptions>,
  HttpOptions: true satisfies Takes<Table.HttpOptions>,
  LeaseOptions: true satisfies Takes<Table.LeaseOptions>,
  LimitedOptions: true satisfies Takes<Table.LimitedOptions>,
  LimiterOptions: true satisfies Takes<Table.LimiterOptions>,
  LockedOptions: true satisfies Takes<Table.LockedOptions<object, []>>,
  OnceOptions: true satisfies Takes<Table.OnceOptions<object, []>>,
  PolicyOptions: true satisfies Takes<Table.PolicyOptions>,
  RunOptions: true satisfies Takes<Table.RunOptions>,
  SetOptions: true satisfies Takes<Table.SetOptions>,
  ShutOptions: true satisfies Takes<Table.ShutOptions>,
  OccurrenceOptions: true satisfies Takes<Table.OccurrenceOptions>,
  RefreshOptions: true satisfies Takes<Table.RefreshOptions<string>>,
  TickOptions: true satisfies Takes<Table.TickOptions>,
  WatchOptions: true satisfies Takes<Table.WatchOptions>,
  CronOptions: true satisfies Takes<CronEntry.CronOptions>,
  SigV4Options: true satisfies Takes<Sigv4.SigV4Options>,
  TakeOptions: true satisfies Takes<Table.TakeOptions>,
  TestClientOptions: true satisfies Takes<Testing.TestClientOptions>,
  IdempotencyOptions: true satisfies Takes<Middy.IdempotencyOptions<never, never>>,
  LockHandlerOptions: true satisfies Takes<Middy.LockHandlerOptions<never, never>>,
  ScheduleHandlerOptions: true satisfies Takes<Middy.ScheduleHandlerOptions>,
  SqsHandlerOptions: true satisfies Takes<Middy.SqsHandlerOptions<never>>,
  HonoIdempotentOptions: true satisfies Takes<Hono.HonoIdempotentOptions<object>>,
  IdempotentOptions: true satisfies Takes<Nest.IdempotentOptions<object>>,
  RateLimitOptions: true satisfies Takes<Nest.RateLimitOptions<never>>,
  NestAsyncOptions: true satisfies Takes<Nest.NestAsyncOptions<object>>,
  TracedOptions: true satisfies Takes<Otel.TracedOptions>,
  JwtOptions: true satisfies Takes<Cdk.JwtOptions>,
  RegionsOptions: true satisfies Takes<Cdk.RegionsOptions>,
  LockServiceProps: true satisfies Takes<Cdk.LockServiceProps>,
  LockedSectionProps: true satisfies Takes<StepFunctions.LockedSectionProps>,
  WakeOptions: true satisfies Takes<Cdk.WakeOptions>,
};

it("holds for the exported options of every entry", () => {
  const surface = readFileSync(join(ROOT, "test/tidy/public-surface.txt"), "utf8");
  const exported = [...surface.matchAll(/^ {2}(?:interface|type) (\w+(?:Options|Props))$/gm)].map(([, name = ""]) => name);
  expect([...new Set(exported)].toSorted()).toEqual(Object.keys(TAKES).toSorted());
});
