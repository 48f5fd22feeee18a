/** `holdfast reset`: forgets a run that is over or was abandoned. */
import type { CommandContext } from "../context.js";

/** Forgets the run: the next start is a first attempt. */
export async function reset(key: string, reason: string, { locks, asJson, print }: CommandContext): Promise<number> {
  await locks.runs.reset(key, { reason });
  await print(asJson ? `${JSON.stringify({ key, reset: true })}\n` : `${key} is forgotten: the next start is a first attempt\n`);
  return 0;
}
