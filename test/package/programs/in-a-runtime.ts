/** The work of a client in any runtime with `fetch`: it holds, refuses, waits for its turn, runs once, and notices that nobody is there. */
import { createLockClient } from "../../../lib/index.js";

/** Uses the service at `url`, and for up to `nobodyMs` a URL where nobody listens. Returns what it saw. */
export async function used(url: string, nobodysUrl: string, nobodyMs = 60_000): Promise<unknown> {
  const [alice, bob] = [createLockClient({ url, owner: "alice" }), createLockClient({ url, owner: "bob" })];
  const lease = await alice.acquire("K", { leaseMs: 6000 });
  const isHeld = lease.isHeld();
  const refused = await bob.tryAcquire("K");
  const [holder] = (await bob.inspect("K")).holders;
  const waiting = bob.acquire("K", { waitMs: 20_000 });
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const ended = await lease.release();
  const next = await waiting;
  const isNext = next.isHeld() && next.fencingToken > lease.fencingToken;
  await next.release();
  const [first, again] = [await alice.runOnce("R", () => "done"), await bob.runOnce("R", () => "done twice")];
  const nobody: unknown = await createLockClient({ url: nobodysUrl })
    .acquire("K", { waitMs: nobodyMs })
    .catch((error: unknown) => error);
  await Promise.all([alice.close(), bob.close()]);
  const { code, definite, message } = nobody as { readonly code: string; readonly definite: boolean; readonly message: string };
  return {
    ...{ isHeld, refused, ended, isNext, holder: holder?.owner, runs: [first.value, again.value, again.replayed] },
    nobody: { code, definite, isNamed: message.includes(`no answer (ECONNREFUSED) from ${nobodysUrl}`) },
  };
}
