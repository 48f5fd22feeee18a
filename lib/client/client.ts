/**
 * The lock client, for any service or table. It owns the leases that it granted. Each lease has its own keep-alive, and none of them
 * outlives the client.
 */
import { nodeModules } from "../core/node-modules.js";
import { LocalQueues } from "./ask/local-queue.js";
import { lockCalls } from "./calls/acquire.js";
import { type ClientOptions, CLOSE_OPTIONS } from "./calls/client-options.js";
import { type ElectOptions, type Lead, ELECT_OPTIONS, elect } from "./calls/elect.js";
import { handleCalls } from "./calls/handles.js";
import { WATCH_OPTIONS, watch } from "./calls/watch.js";
import { LockLostError } from "./wire/errors.js";
import { type InvocationContext, checkContext } from "./wire/invocation.js";
import { type WithUnscoped, jobCalls, UNSCOPED } from "./calls/jobs.js";
import { Alarms } from "./hold/alarms.js";
import { RenewalBatcher } from "./hold/renewal-batcher.js";
import type { LockClient } from "./calls/lock-client.js";
import { operatorCalls } from "./calls/operate.js";
import { setCalls } from "./calls/sets.js";
import { type WorkLast, SCOPE, optionsAndWork } from "./calls/options.js";
import { isMadeUnder } from "./calls/surrounding.js";
import { checkOptions, checkWork } from "./wire/checks.js";
import { Outage } from "./wire/outage.js";
import { RefusedTakes } from "./ask/refused-takes.js";
import { type CloseOptions, DRAIN_MS, close } from "./hold/closing.js";
import { Registry } from "./hold/registry.js";
import type { RunResult } from "./calls/run/outcome.js";
import { type Run, runOnce } from "./calls/run/run-once.js";
import { type RunOptions, RUN } from "./calls/run/run-options.js";
import { runsOf } from "./calls/run/runs.js";
import { type CallDeps, type WithSession, Session, SESSION, sessionOf } from "./calls/session.js";
import { Holds } from "./hold/holds.js";
import type { LeaseDeps } from "./hold/lease.js";
import { emitQuietly } from "./wire/events.js";
import type { Callers } from "./wire/http.js";
import { closedBySigterm } from "./calls/sigterm.js";
import { RetryGate } from "./wire/retry-gate.js";

/** The dependencies that the creator of a client passes in. */
export interface OuterDeps extends Pick<CallDeps, "api" | "ids" | "clock" | "random" | "transport" | "use"> {
  /** Tells the callers of the client apart, if it has several. */
  readonly callers?: Callers | undefined;
}

/** The dependencies that all views of a client share. */
interface SharedDeps extends Omit<CallDeps, "track" | "context">, Pick<LeaseDeps, "alarms" | "gate" | "renewalBatcher"> {
  readonly localQueues: LocalQueues;
}

/** Creates a client that calls `deps.api`. */
export function createClient(deps: OuterDeps, options: ClientOptions = {}): LockClient {
  const { api, clock, random, callers } = deps;
  const alarms = new Alarms(clock);
  const shared = {
    alarms,
    renewalBatcher: new RenewalBatcher(api, clock, alarms, callers),
    gate: new RetryGate(clock, random),
    localQueues: new LocalQueues(),
    refusedTakes: new RefusedTakes(),
    outage: new Outage(clock),
  };
  const registry = new Registry();
  whenRestored(() => registry.lose((key) => new LockLostError(`${key}: the process was restored from a snapshot`, "restored", { key })));
  const client = createView({ ...deps, ...shared }, options, registry);
  // Nobody knows at which point of its user's code the signal comes, so leases without work have their time too.
  return options.closeOnSigterm ? closedBySigterm(client, () => closed(sessionOf("client", client), {}, DRAIN_MS)) : client;
}

/** Runs `task` in each process that is restored from a snapshot of this one, if Node is making one. Other images give no notice. */
function whenRestored(task: () => void): void {
  const snapshot = nodeModules()?.("node:v8").startupSnapshot;
  if (snapshot?.isBuildingSnapshot()) snapshot.addDeserializeCallback(task);
}

/** Creates the client, or a view of it for one invocation or one scope. */
function createView(
  shared: SharedDeps,
  options: ClientOptions,
  registry: Registry,
  { context, scope }: { readonly context?: InvocationContext | undefined; readonly scope?: string | undefined } = {},
): LockClient {
  const deps = { ...shared, context, scope, track: (work: Promise<unknown>) => registry.track(work) };
  const holds = new Holds(deps, registry, (event) => void emitQuietly(options.onEvent, event));
  const unscoped = (): LockClient => (scope === undefined ? client : createView(shared, options, new Registry(registry), { context }));
  const session = new Session(deps, options, registry, holds, scope);
  const locks = lockCalls(session, shared.localQueues);
  const close = (closeOptions: CloseOptions = {}): Promise<void> => closed(session, closeOptions);
  const client: LockClient & WithSession & WithUnscoped = {
    ...locks,
    ...setCalls(session),
    ...runCalls(session),
    ...handleCalls(locks, deps.random),
    ...operatorCalls(session),
    ...standingCalls(session),
    ...jobCalls(unscoped, session),

    forInvocation(invocation) {
      checkContext(invocation);
      return createView(shared, options, new Registry(registry), { context: invocation, scope });
    },

    scope(id) {
      SCOPE("scope", id);
      return createView(shared, options, new Registry(registry), { context, scope: id });
    },

    close,
    [Symbol.asyncDispose]: () => close(),
    [SESSION]: session,
    [UNSCOPED]: unscoped,
  };
  return client;
}

function runCalls(session: Session): Pick<LockClient, "runOnce" | "runs"> {
  return {
    async runOnce<T>(name: string, ...rest: WorkLast<RunOptions, Run, T>): Promise<RunResult<T>> {
      const [runOptions, work] = optionsAndWork(rest);
      const key = session.keyOf(name);
      checkWork("runOnce", "work", work);
      checkOptions("runOnce", runOptions, RUN);
      return runOnce(session, key, runOptions, work);
    },

    runs: runsOf(session),
  };
}

/** Returns the calls that last until their signal aborts: a watch of a key, and an election. */
function standingCalls(session: Session): Pick<LockClient, "watch" | "elect"> {
  return {
    watch(name, options = {}) {
      const key = session.keyOf(name);
      checkOptions("watch", options, WATCH_OPTIONS);
      return watch(session, key, options);
    },

    async elect(name: string, ...rest: [work: Lead] | [ElectOptions, Lead]) {
      const [electOptions, lead] = optionsAndWork(rest);
      const key = session.keyOf(name);
      checkWork("elect", "lead", lead);
      checkOptions("elect", electOptions, ELECT_OPTIONS);
      return elect(session, key, electOptions, lead);
    },
  };
}

/** Closes the client or view of this session. @param heldMs the time that leases without work have by default, in ms */
async function closed(session: Session, options: CloseOptions, heldMs = 0): Promise<void> {
  checkOptions("close", options, CLOSE_OPTIONS);
  const { registry, holds, deps } = session;
  const { drainMs = session.options.drainMs } = options;
  await close({ registry, holds, clock: deps.clock, context: deps.context, drainMs, heldMs, isAround: isMadeUnder });
}
