/**
 * A partner's API that allows three calls at a time, and callers in any number of processes. A permit is a lease of
 * its own: that of a caller who crashed comes back when its lease is over, and nobody has to count anything down.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { LockClient } from "../../lib/index.js";
import { play } from "./stage.js";

/** The partner's API. */
export interface Partner {
  ask(question: string, signal: AbortSignal): Promise<string>;
}

/** Asks the partner as soon as fewer than three others do. All who use the key say the same limit. */
export function partnerCalls(locks: Pick<LockClient, "semaphore">, partner: Partner): (question: string) => Promise<string> {
  const permits = locks.semaphore("PARTNER_API", { limit: 3, waitMs: 60_000 });
  return (question) => permits.withLock(({ signal }) => partner.ask(question, signal));
}

/** A partner that takes its time, and knows how many were ever inside at once. */
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
