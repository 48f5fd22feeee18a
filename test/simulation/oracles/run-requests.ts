/** The requests of clients about runs, as they reached a handler. Only what they asked for may happen. */
import { DEFAULTS } from "../../../lib/core/limits.js";
import { type Said, saidOf } from "./run-truth.js";

/** A request's JSON. */
export type Body = Readonly<Record<string, unknown>>;

/** The parameters of the request that started the run. */
interface StartAsked {
  /** Empty: the caller gave no fingerprint of its payload. */
  readonly fingerprint: string;
  readonly keepMs: number;
}

/** Every request about runs of one history. */
export class RunRequests {
  readonly #starts = new Map<string, StartAsked>();
  readonly #saves = new Map<string, Set<string>>();
  readonly #outcomes = new Map<string, Said>();
  /** The number of resets in progress, by key. */
  readonly #resets = new Map<string, number>();

  start(leaseId: string, { fingerprint = "", keepResultMs = DEFAULTS.keepResultMs }: Body): void {
    const keepMs = keepResultMs === "forever" ? Number.POSITIVE_INFINITY : (keepResultMs as number);
    this.#starts.set(leaseId, { fingerprint: fingerprint as string, keepMs });
  }

  save(leaseId: string, checkpoint: unknown): void {
    this.#saves.set(leaseId, (this.#saves.get(leaseId) ?? new Set()).add(JSON.stringify(checkpoint)));
  }

  outcome(leaseId: string, body: Body): Said {
    const said = saidOf(body);
    this.#outcomes.set(leaseId, said);
    return said;
  }

  /** Records a reset. It is in progress until the returned function is called. */
  reset(key: string): () => void {
    this.#resets.set(key, (this.#resets.get(key) ?? 0) + 1);
    return () => void this.#resets.set(key, (this.#resets.get(key) ?? 0) - 1);
  }

  startOf(leaseId: string): StartAsked {
    return this.#starts.get(leaseId) ?? { fingerprint: "", keepMs: 0 };
  }

  outcomeOf(leaseId: string): Said | undefined {
    return this.#outcomes.get(leaseId);
  }

  wasSaved(leaseId: string, text: string): boolean {
    return this.#saves.get(leaseId)?.has(text) === true;
  }

  isBeingReset(key: string): boolean {
    return (this.#resets.get(key) ?? 0) > 0;
  }
}
