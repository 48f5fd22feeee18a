/**
 * A partner's API that allows three concurrent calls, and callers in any number of processes. Each permit is a lease:
 * the permit of a crashed caller comes back when its lease expires, and no counter has to be decremented.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { LockClient } from "../../lib/index.js";
import { play } from "./stage.js";

/** The partner's API. */
export interface Partner {
  ask(question: string, signal: AbortSignal): Promise<string>;
}

/** Calls the partner as soon as fewer than three other calls are running. Everyone who uses the key passes the same limit. */
export function partnerCalls(locks: Pick<LockClient, "semaphore">, partner: Partner): (question: string) => Promise<string> {
  const permits = locks.semaphore("PARTNER_API", { limit: 3, waitMs: 60_000 });
  return (question) => permits.withLock(({ signal }) => partner.ask(question, signal));
}

/** A slow partner that records the largest number of concurrent calls. */
export function slowPartner(answering: () => Promise<unknown>): Partner & { readonly most: number } {
  let [inside, most] = [0, 0];
  return {
    get most() {
      return most;
    },
    async ask(question) {
      most = Math.max(most, ++inside);
      await answering();
      inside--;
      return `${question}: yes`;
    },
  };
}

await play(import.meta.url, async ({ join }) => {
  const partner = slowPartner(() => delay(300));
  const questions = Array.from({ length: 10 }, (_, caller) => `question ${caller}`);
  const answers = await Promise.all(questions.map((question) => partnerCalls(join(), partner)(question)));
  console.log(`answers: ${answers.length}, most inside at once: ${partner.most}`);
});
