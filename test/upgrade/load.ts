/**
 * The load of a change of versions, in one process: leases that are held throughout, lines of waiters, permits, readers and
 * writers, and runs. Each part tells the violations that it sees. The load of contended keys is test/chaos/worker.ts.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type AcquireOptions, type Lease, type LockClient, createLockClient } from "../../lib/index.js";
import { leaseIdAt } from "../support/lease-ids.js";

/** Where the load goes, and whom it tells. */
export interface LoadContext {
  readonly url: string;
  /** Tells a violation. */
  readonly violation: (what: string) => void;
  /** Counts what happened, so that a load that does nothing is noticed. */
  readonly count: (what: string) => void;
}

/** A lease is renewed after a third of this, so in each stage. */
const LEASE_MS = 8000;
/** The codes of a request that got no answer in time, which can happen on a machine that is busy elsewhere. */
const BUSY_CODES = ["unavailable", "wait-timeout"];
const WAIT_MS = 12_000;
/** The lease of a run whose caller dies, in ms. */
const SHORT_MS = 2500;
const PROGRESS = { page: 17 };

function codeOf(error: unknown): string {
  return (error as { readonly code?: string }).code ?? String(error);
}

/** Returns a `fetch` that adds the next version's option to each acquire. */
function noting(note: string): typeof fetch {
  return async (input, init) => {
    if (init?.method !== "PUT" || typeof init.body !== "string") return fetch(input, init);
    return fetch(input, { ...init, body: JSON.stringify({ ...(JSON.parse(init.body) as object), note }) });
  };
}

/** A lease that is held with heartbeats, as a process holds it that knows nothing of the change of versions. */
export class Holder {
  readonly #client: LockClient;
  #lease: Lease | undefined;

  constructor(
    readonly key: string,
    readonly context: LoadContext,
    readonly note?: string,
  ) {
    this.#client = createLockClient({ url: context.url, owner: key, ...(note !== undefined && { fetch: noting(note) }) });
  }

  async acquire(): Promise<void> {
    this.#lease = await this.#client.acquire(this.key, { leaseMs: LEASE_MS });
    this.#lease.signal.addEventListener("abort", () => this.#isEnding || this.context.violation(`${this.key}: the lease was lost`));
  }

  get leaseId(): string {
    return this.#lease?.leaseId ?? "";
  }

  #isEnding = false;

  async release(): Promise<void> {
    this.#isEnding = true;
    if (!this.#lease) return this.#client.close();
    if (!this.#lease.isHeld()) this.context.violation(`${this.key}: not held at the end`);
    const state = await this.#lease.release();
    if (state !== "released") this.context.violation(`${this.key}: its release says ${state}, so it was lost`);
    await this.#client.close();
    this.context.count("holds kept");
  }
}

/** A holder, and waiters that came one after the other. They must be served in this order. */
export class Line {
  readonly #served: string[] = [];
  readonly #waiters: Promise<void>[] = [];
  readonly #clients: LockClient[] = [];
  #head: Lease | undefined;

  constructor(
    readonly key: string,
    readonly context: LoadContext,
  ) {}

  #client(owner: string): LockClient {
    const client = createLockClient({ url: this.context.url, owner });
    this.#clients.push(client);
    return client;
  }

  /** Lets the holder and then each waiter come. */
  async form(names: readonly string[]): Promise<void> {
    this.#head = await this.#client("head").acquire(this.key, { leaseMs: LEASE_MS });
    for (const [before, name] of names.entries()) {
      const client = this.#client(name);
      let hasLeft = false as boolean;
      this.#waiters.push(
        client.acquire(this.key, { leaseMs: LEASE_MS, waitMs: WAIT_MS }).then(
          async (lease) => {
            hasLeft = true;
            this.#served.push(name);
            await lease.release();
          },
          (error: unknown) => {
            hasLeft = true;
            this.context.violation(`${this.key}: ${name} was not served: ${codeOf(error)}`);
          },
        ),
      );
      while (!hasLeft && (await client.inspect(this.key)).waiters.length <= before) await delay(20);
      if (hasLeft) this.context.violation(`${this.key}: ${name} left the queue before the holder`);
    }
  }

  /** Lets the holder leave, and each waiter after it. */
  async dissolve(names: readonly string[]): Promise<void> {
    const state = await this.#head?.release();
    if (state !== "released") this.context.violation(`${this.key}: the head's release says ${state}, so it was lost`);
    await Promise.all(this.#waiters);
    if (this.#served.join() !== names.join())
      this.context.violation(`${this.key}: not served in the order of arrival: ${this.#served.join(", ")}`);
    await Promise.all(this.#clients.map((client) => client.close()));
    this.context.count("lines served");
  }
}

/** Takes the key again and again, and checks who is there at the same time. */
export async function visit(
  key: string,
  options: AcquireOptions,
  there: Set<AcquireOptions>,
  isAllowed: (there: ReadonlySet<AcquireOptions>) => boolean,
  context: LoadContext,
  isOver: () => boolean,
): Promise<void> {
  const client = createLockClient({ url: context.url });
  while (!isOver()) {
    try {
      const lease = await client.acquire(key, { leaseMs: LEASE_MS, waitMs: WAIT_MS, ...options });
      there.add(options);
      if (!isAllowed(there)) context.violation(`${key}: ${JSON.stringify([...there])} beside each other`);
      await delay(15);
      there.delete(options);
      if (!lease.isHeld()) context.violation(`${key}: lost`);
      await lease.release();
      context.count(`visits of ${key}`);
    } catch (error) {
      if (!BUSY_CODES.includes(codeOf(error))) context.violation(`${key}: ${codeOf(error)}`);
    }
    await delay(5);
  }
  await client.close();
}

/** Runs work that two callers ask for at the same time, again and again. It must be done once, and both must get its result. */
export async function runTwice(context: LoadContext, isOver: () => boolean): Promise<void> {
  const clients = [0, 1].map(() => createLockClient({ url: context.url }));
  for (let number = 0; !isOver(); number++) {
    const key = `RUN_${number}`;
    let executions = 0;
    const results = await Promise.allSettled(
      clients.map((client) =>
        client.runOnce(key, { leaseMs: LEASE_MS, waitMs: WAIT_MS }, async (run) => {
          executions += 1;
          for (let step = 0; step < 3; step++) {
            await run.saveCheckpoint({ step });
            await delay(40);
          }
          return { of: key, large: "x".repeat(2000) };
        }),
      ),
    );
    const said = results.map((result) => (result.status === "fulfilled" ? result.value.value.of : codeOf(result.reason)));
    // Work that can't save its checkpoint fails, and the other caller does it again.
    if (said.some((one) => BUSY_CODES.includes(one))) continue;
    if (executions !== 1 || said.some((one) => one !== key)) context.violation(`${key}: done ${executions} times, and told ${said.join()}`);
    context.count("runs done once");
  }
  await Promise.all(clients.map((client) => client.close()));
}

/** A run whose caller saves a checkpoint and dies. Another caller must take it over with the checkpoint. */
export class LeftRun {
  constructor(
    readonly key: string,
    readonly context: LoadContext,
  ) {}

  /** Starts the run without heartbeats. */
  async leave(): Promise<void> {
    const url = `${this.context.url}/v1/runs/${this.key}/leases/${leaseIdAt(Date.now())}`;
    const started = await send(url, "PUT", { leaseMs: SHORT_MS });
    const saved = await send(`${url}/renew`, "POST", { checkpoint: PROGRESS });
    if (started.status !== 201 || saved.status !== 200)
      this.context.violation(`${this.key}: started with ${started.status}, saved with ${saved.status}, so it was lost`);
  }

  /** Takes it over. */
  async takeOver(): Promise<void> {
    const client = createLockClient({ url: this.context.url });
    try {
      const { value, attempt } = await client.runOnce(this.key, { leaseMs: LEASE_MS, waitMs: WAIT_MS }, (run) => run.checkpoint);
      if (attempt !== 2 || JSON.stringify(value) !== JSON.stringify(PROGRESS))
        this.context.violation(`${this.key}: taken over as attempt ${attempt} with the checkpoint ${JSON.stringify(value)}`);
      this.context.count("runs taken over");
    } catch (error) {
      this.context.violation(`${this.key}: not taken over: ${String(error)}`);
    }
    await client.close();
  }
}

/** The answer to a request. */
export interface Answer {
  readonly status: number;
  /** The members depend on the request. */
  readonly body: ReturnType<JSON["parse"]>;
}

/** Sends one request. @throws Error if there is no answer */
export async function send(url: string, method: string, body?: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const json = body && { body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
  const response = await fetch(url, { method, ...json });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}
