/**
 * Plays a scene, and judges it by this process's clock:
 *
 * - an answer "yes" to `held?` is wrong if its question was asked after the service's own proof had ended;
 * - an answer "no" where the scene says "yes" is wrong only if it came before that: later, the machine was too slow to tell, and the scene
 *   is played again;
 * - no answer may name a leaseId or the token;
 * - an id whose request may have been carried out is asked again, or cancelled, before another id of the same key is sent;
 * - at the end nothing is held that the client didn't say.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Answered, Driver } from "./driver.js";
import type { Scene, Step } from "./scene.js";
import { type Exchange, type ScriptedService, startScripted } from "./scripted-service.js";

/** The longest that `until` and `seen` wait. */
const PATIENCE_MS = 25_000;
/** The pause between two questions of `until`. */
const AGAIN_MS = 100;
/** A client may give a lease up this long before its end: its margin, and the way of its request. */
const EARLY_MS = 400;
/** The value of a scripted token. */
export const TOKEN = "scripted-token-0123456789";

const LEASE_ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/i;

/** The result of a scene: a sentence for each thing that was wrong. */
export interface Played {
  readonly wrong: readonly string[];
  /** The command that the driver can't carry out. */
  readonly cannot?: string;
  /** True if the machine was too slow to tell. */
  readonly unsure: boolean;
}

/** Plays `scene` once with a driver. */
export async function play(scene: Scene, driver: Driver): Promise<Played> {
  const service = await startScripted(scene.rules ?? []);
  const playing = new Playing(service, driver);
  try {
    await playing.all(scene);
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
  } finally {
    await service.close();
  }
  const { wrong, cannot, unsure } = playing;
  return { wrong, unsure, ...(cannot !== undefined && { cannot }) };
}

/** Ends a scene early: what is wrong, or can't be told, is noted already. */
class Stop extends Error {}

class Playing {
  readonly wrong: string[] = [];
  cannot: string | undefined;
  unsure = false;
  readonly #service: ScriptedService;
  readonly #driver: Driver;
  #begun: { readonly command: string; readonly answered: Promise<Answered> } | undefined;

  constructor(service: ScriptedService, driver: Driver) {
    this.#service = service;
    this.#driver = driver;
  }

  async all(scene: Scene): Promise<void> {
    await this.#step({ ask: `open ${encodeURIComponent(this.#service.url)} ${scene.open ?? ""}`.trim(), answers: ["ok"] });
    try {
      for (const step of scene.play) await this.#step(step);
      const { exchanges } = this.#service;
      this.wrong.push(...(scene.sent?.(exchanges) ?? []), ...secondIds(exchanges));
    } finally {
      await this.#driver.ask("close");
    }
  }

  async #step(step: Step): Promise<void> {
    if ("ask" in step) {
      const answered = await this.#ask(step.ask);
      const tookMs = answered.answeredMs - answered.askedMs;
      if (tookMs < (step.leastMs ?? 0)) this.wrong.push(`${step.ask}: answered after ${Math.round(tookMs)} ms, before the wait was over`);
      return void this.#expect(step.ask, answered, step.answers);
    }
    if ("until" in step) return this.#until(step.until, step.answers);
    if ("begin" in step) {
      this.#begun = { command: step.begin, answered: this.#ask(step.begin) };
      this.#begun.answered.then(({ reply }) => this.#note(step.begin, reply)).catch(() => undefined);
      return;
    }
    if ("ends" in step) {
      const { command, answered } = this.#begun ?? { command: "", answered: Promise.reject(new Error("nothing was begun")) };
      return void this.#expect(command, await answered, step.ends);
    }
    if ("seen" in step) return this.#seen(step.seen, step.times);
    if ("passMs" in step) return delay(step.passMs);
    if ("freezeMs" in step) {
      this.#driver.signal("SIGSTOP");
      await step.meanwhile?.(this.#service);
      await delay(step.freezeMs);
      return void this.#driver.signal("SIGCONT");
    }
    if ("interrupt" in step) return void this.#driver.signal("SIGINT");
    if ("free" in step) return this.#free(step.free);
    await step.other(this.#service);
  }

  async #ask(command: string): Promise<Answered> {
    const answered = await this.#driver.ask(command);
    const { reply, askedMs } = answered;
    if (LEASE_ID.test(reply) || reply.includes(TOKEN)) this.wrong.push(`${command}: the answer names a secret: ${reply}`);
    const [verb, key = ""] = command.split(" ");
    if (verb === "held?" && reply === "yes" && askedMs > this.#service.provenUntilMs(decodeURIComponent(key)))
      this.wrong.push(`${command}: believed after the service's proof had ended`);
    return answered;
  }

  #expect(command: string, { reply, answeredMs }: Answered, answers: readonly string[]): void {
    if (answers.some((answer) => reply === answer || reply.startsWith(`${answer} `))) return;
    this.#note(command, reply);
    if (this.cannot !== undefined) throw new Stop();
    const [verb, key = ""] = command.split(" ");
    if (verb === "held?" && reply === "no" && answeredMs > this.#service.provenUntilMs(decodeURIComponent(key)) - EARLY_MS) {
      this.unsure = true;
      throw new Stop();
    }
    this.wrong.push(`${command}: answered ${JSON.stringify(reply)}, and not ${answers.join(" or ")}`);
    throw new Stop();
  }

  #note(command: string, reply: string): void {
    if (reply === "can't") this.cannot = command;
  }

  async #until(command: string, answers: readonly string[]): Promise<void> {
    let last = "";
    await this.#patiently(
      async () => answers.includes((last = (await this.#ask(command)).reply)),
      () => `${command}: still ${JSON.stringify(last)}, and not ${answers.join(" or ")}`,
    );
  }

  async #seen(operation: Exchange["operation"], times: number): Promise<void> {
    const these = operation === "renew" ? ["renew", "renewMany", "renewSet"] : [operation];
    const count = (): number =>
      this.#service.exchanges.filter((exchange) => these.includes(exchange.operation) && exchange.status !== undefined).length;
    await this.#patiently(
      () => count() >= times,
      () => `the service answered ${count()} requests of ${operation}, and not ${times}`,
    );
    // The answer is on its way to the client.
    await delay(AGAIN_MS);
  }

  async #free(key: string): Promise<void> {
    let found = "";
    await this.#patiently(
      async () => {
        const { body } = await this.#service.other("GET", `/v1/locks/${key}`);
        const { holders = [], waiters = [] } = body as { readonly holders?: readonly unknown[]; readonly waiters?: readonly unknown[] };
        found = `${holders.length} hold it and ${waiters.length} wait for it`;
        return holders.length + waiters.length === 0;
      },
      () => `${key} was left behind: ${found}`,
    );
  }

  /** Waits until something is so. @throws Stop when patience has an end, after noting what was wrong */
  async #patiently(isSo: () => boolean | Promise<boolean>, wrong: () => string): Promise<void> {
    const began = performance.now();
    while (!(await isSo())) {
      if (this.cannot !== undefined) throw new Stop();
      if (performance.now() - began > PATIENCE_MS) {
        this.wrong.push(`${wrong()}, after ${PATIENCE_MS} ms`);
        throw new Stop();
      }
      await delay(AGAIN_MS / 4);
    }
  }
}

/** Returns a sentence for each id that was sent while an earlier one of its key could still be granted. */
function secondIds(exchanges: readonly Exchange[]): readonly string[] {
  const wrong: string[] = [];
  /** The ids of each key whose request may have been carried out unknown to the client. */
  const unknown = new Map<string, Set<string>>();
  for (const { operation, key, leaseId, status } of exchanges) {
    if (key === undefined || leaseId === undefined) continue;
    const ids = unknown.get(`${operation === "start" ? "run" : "lock"} ${key}`) ?? new Set();
    if (operation === "acquire" || operation === "acquireSet" || operation === "start") {
      const [first] = [...ids].filter((id) => id !== leaseId);
      if (first !== undefined) wrong.push(`${operation} ${key}: a second id was sent while the first could still be granted`);
      ids.delete(leaseId);
      if (status === undefined || status === 0 || status >= 500) ids.add(leaseId);
      unknown.set(`${operation === "start" ? "run" : "lock"} ${key}`, ids);
    } else for (const set of unknown.values()) set.delete(leaseId);
  }
  return wrong;
}
