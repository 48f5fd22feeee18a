/** A scene: what the service does, what the client is asked, and what it must answer. */
import type { Exchange, Rule, ScriptedService } from "./scripted-service.js";

/** The properties that scenes show. docs/write-a-client.md explains each. */
export const PROPERTIES = {
  believed: "A lease is believed no longer than its answer proves",
  told: "The work is told of a loss, and of nothing else",
  counted: "A lease counts from the request that was answered",
  once: "Done work isn't done twice",
  saved: "A checkpoint is the last that was saved",
  nothingLeft: "Nothing is left behind",
  oneRequest: "A request is one request",
  waits: "A wait waits, and ends",
  secrets: "Secrets stay",
  sameNames: "One payload has one fingerprint, and one name one key",
  processes: "A hold belongs to the process and the thread that took it",
} as const;

export type Property = keyof typeof PROPERTIES;

/** One step. The words of a command are those of docs/write-a-client.md; an answer must begin with one of the given texts. */
export type Step =
  /** Asks, and compares the answer, which may not come sooner than `leastMs`. */
  | { readonly ask: string; readonly answers: readonly string[]; readonly leastMs?: number }
  /** Asks again and again, until it is answered so. */
  | { readonly until: string; readonly answers: readonly string[] }
  /** Sends a command whose answer a later `ends` takes. */
  | { readonly begin: string }
  | { readonly ends: readonly string[] }
  /** Waits until the service has answered so many requests of this operation, in a batch or alone. */
  | { readonly seen: Exchange["operation"]; readonly times: number }
  | { readonly passMs: number }
  /** Stops the driver's process for so long, and does something straight at the service meanwhile. */
  | { readonly freezeMs: number; readonly meanwhile?: ((service: ScriptedService) => unknown) | undefined }
  /** Sends it SIGINT, which ends the call under way. */
  | { readonly interrupt: true }
  /** Waits until nobody holds the key or waits for it, which is sooner than the end of its lease. */
  | { readonly free: string }
  /** Does something straight at the service, as another client. */
  | { readonly other: (service: ScriptedService) => unknown };

/** One row of the table. */
export interface Scene {
  /** A sentence about the client. */
  readonly name: string;
  readonly property: Property;
  /** @default the service answers honestly */
  readonly rules?: readonly Rule[];
  /** Words after the URL in `open`. @default none */
  readonly open?: string;
  readonly play: readonly Step[];
  /** Returns what was wrong in the requests that the service got, a sentence each. */
  readonly sent?: (exchanges: readonly Exchange[]) => readonly string[];
  /** The mistake of a client that fails it: one of mistakes.ts, or the client in `examples/python` of commit 73eaab57. */
  readonly mistake: string;
  /** Why a client can't play it, by the name of its driver. */
  readonly cannot?: Readonly<Record<string, string>>;
  /** The mistake that a client still makes, by the name of its driver. */
  readonly fails?: Readonly<Record<string, string>>;
}

export const ask = (command: string, ...answers: readonly string[]): Step => ({ ask: command, answers });
export const askSlowly = (leastMs: number, command: string, ...answers: readonly string[]): Step => ({ ask: command, answers, leastMs });
export const until = (command: string, ...answers: readonly string[]): Step => ({ until: command, answers });
export const begin = (command: string): Step => ({ begin: command });
export const ends = (...answers: readonly string[]): Step => ({ ends: answers });
export const seen = (operation: Exchange["operation"], times: number): Step => ({ seen: operation, times });
export const pass = (passMs: number): Step => ({ passMs });
export const freeze = (freezeMs: number, meanwhile?: (service: ScriptedService) => unknown): Step => ({ freezeMs, meanwhile });
export const INTERRUPT: Step = { interrupt: true };
export const free = (key: string): Step => ({ free: key });
export const other = (does: (service: ScriptedService) => unknown): Step => ({ other: does });
