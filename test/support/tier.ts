/** The tier that a test runs in, for tests that run in both: `SIZED` of vitest.config.ts lists their files. */
import { inject } from "vitest";
import { tableInMemory } from "../simulation/dynamo/table-in-memory.js";
import { freshTable, throughSdk } from "./engine.js";

declare module "vitest" {
  interface ProvidedContext {
    /** The tier, which vitest.config.ts provides. */
    tier: "quick" | "slow";
  }
}

/** Returns the size of this test in its tier: a number of histories, of callers. */
export function sized({ quick, slow }: Readonly<Record<"quick" | "slow", number>>): number {
  return inject("tier") === "slow" ? slow : quick;
}

/** True in the slow tier: enough histories are played to reach every situation, and what only costs or waits is tested. */
export function isThorough(): boolean {
  return inject("tier") === "slow";
}

/** Returns a new table behind the AWS SDK's client: in memory in the quick tier, and on the engine in the slow one. */
export async function tableOfTier(): Promise<ReturnType<typeof tableInMemory>> {
  return isThorough() ? throughSdk(await freshTable()) : tableInMemory();
}
