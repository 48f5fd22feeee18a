/** Wraps a client: the same calls, with spans and metrics. Every member is either traced here or named in `Untraced`. */
import { optionsAndWork } from "../client/calls/options.js";
import { handleCalls } from "../client/calls/handles.js";
import type { ElectOptions, Lead } from "../client/calls/elect.js";
import { type WithUnscoped, jobCalls, UNSCOPED } from "../client/calls/jobs.js";
import type { Lease } from "../client/hold/lease-types.js";
import type { LeaseSet, SetKey } from "../client/hold/lease-set.js";
import type { LockClient } from "../client/calls/lock-client.js";
import type { AcquireOptions, SetOptions, WhenUnavailable, WorkLast } from "../client/calls/options.js";
import { checkWork } from "../client/wire/checks.js";
import type { RunResult } from "../client/calls/run/outcome.js";
import type { Run } from "../client/calls/run/run-once.js";
import type { RunOptions } from "../client/calls/run/run-options.js";
import { type Session, sessionOf } from "../client/calls/session.js";
import { type TracedOptions, type Use, Telemetry } from "./telemetry.js";

/** The calls that acquire nothing. */
type Untraced = "use" | "runs" | "limits" | "inspect" | "watch" | "list" | "forceRelease" | "health" | "close" | typeof Symbol.asyncDispose;
type Traced = Omit<LockClient, Untraced>;

/** Marks a traced client, and whatever is spread from one. */
const TRACED = Symbol("traced");

/** The telemetry of each client that is traced: it has one, however often it is wrapped. */
const telemetries = new WeakMap<Session, Telemetry>();

/**
 * Returns the client with spans and metrics. It takes, holds and frees what `client` does, so close either. `withLock`, `withLocks`,
 * `runOnce` and `elect` run their work below a span of the hold; a lease of `acquire` has a span that lasts until it ends. A traced client is
 * returned as it is; the options of a client's first call count.
 * @throws InvalidRequestError if `client` is not one of this package, or an option does not exist
 */
export function traced<Client extends LockClient>(client: Client, options: TracedOptions = {}): Client {
  const session = sessionOf("client", client);
  if (TRACED in client) return client;
  const { transport = "http", clock } = session.deps;
  const telemetry = telemetries.get(session) ?? new Telemetry(options, transport, clock);
  telemetries.set(session, telemetry);
  return tracedBy(telemetry, client);
}

function tracedBy<Client extends LockClient>(telemetry: Telemetry, client: Client): Client {
  return { ...client, ...tracedCalls(client, telemetry), [TRACED]: true };
}

function tracedCalls(client: LockClient, telemetry: Telemetry): Traced {
  const session = sessionOf("client", client);
  session.holds.onBeat = ({ signal }, beat) => telemetry.beat(signal, beat);
  const view = (of: LockClient): LockClient => tracedBy(telemetry, of);
  const locks = lockCalls(client, session, telemetry);
  return {
    ...locks,
    ...setCalls(client, telemetry),
    ...handleCalls(locks, session.deps.random),
    async runOnce<T>(key: string, ...rest: WorkLast<RunOptions & WhenUnavailable, Run, T>): Promise<RunResult<T>> {
      const [options, work] = optionsAndWork(rest);
      checkWork("runOnce", "work", work);
      return telemetry.run(key, work, (within) => client.runOnce(key, options, within));
    },
    async elect(key: string, ...rest: [Lead] | [ElectOptions, Lead]) {
      const [options, lead] = optionsAndWork(rest);
      checkWork("elect", "lead", lead);
      return client.elect(key, options, (lease) => telemetry.around(useOf(key, lease, true), lease, lead));
    },
    ...jobCalls(
      () => view((client as WithUnscoped)[UNSCOPED]?.() ?? client),
      session,
      (name, ask) => telemetry.take(name, ask),
    ),
    scope: (id) => view(client.scope(id)),
    forInvocation: (invocation) => view(client.forInvocation(invocation)),
  };
}

function lockCalls(
  client: LockClient,
  { options: { prefix = "" } }: Session,
  telemetry: Telemetry,
): Pick<LockClient, "tryAcquire" | "acquire" | "withLock" | "attach"> {
  return {
    tryAcquire: (key, options = {}) => telemetry.acquire(useOf(key, options, false), () => client.tryAcquire(key, options)),
    acquire: (key, options = {}) => telemetry.acquire(useOf(key, options, true), () => client.acquire(key, options)),
    async withLock<T>(key: string, ...rest: WorkLast<AcquireOptions & WhenUnavailable, Lease, T>): Promise<T> {
      const [options, work] = optionsAndWork(rest);
      checkWork("withLock", "work", work);
      return telemetry.acquireAround(useOf(key, options, true), work, (within) => client.withLock(key, options, within) as Promise<T>);
    },
    // A handle is a secret: only the key in it is used.
    attach(handle, options = {}) {
      const [, key = ""] = typeof handle === "string" ? handle.split("/") : [];
      const name = key.startsWith(prefix) ? key.slice(prefix.length) : key;
      return telemetry.acquire(useOf(name, {}, false), () => client.attach(handle, options));
    },
  };
}

function setCalls(client: LockClient, telemetry: Telemetry): Pick<LockClient, "tryAcquireAll" | "acquireAll" | "withLocks"> {
  return {
    tryAcquireAll: (keys, options = {}) => telemetry.acquire({ keys, waits: false }, () => client.tryAcquireAll(keys, options)),
    acquireAll: (keys, options = {}) => telemetry.acquire({ keys, waits: true }, () => client.acquireAll(keys, options)),
    async withLocks<T>(keys: readonly SetKey[], ...rest: WorkLast<SetOptions & WhenUnavailable, LeaseSet, T>): Promise<T> {
      const [options, work] = optionsAndWork(rest);
      checkWork("withLocks", "work", work);
      return telemetry.acquireAround({ keys, waits: true }, work, (within) => client.withLocks(keys, options, within) as Promise<T>);
    },
  };
}

function useOf(key: string, options: object | null, waits: boolean): Use {
  const { mode } = (options ?? {}) as { readonly mode?: unknown };
  return { keys: [key], mode: mode === "shared" ? mode : "exclusive", waits };
}
