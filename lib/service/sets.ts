/** The operations on many leases at once. An acquire of a set is one transaction; everything else is one request per key, in parallel. */
import { digestOf } from "../core/canonical.js";
import type { LeaseState, LeaseView } from "../core/commands.js";
import { type Refusal, refuse } from "../core/errors.js";
import type { LockApi } from "../core/api/locks.js";
import type { Mode } from "../core/record.js";
import type { AcquireSetRequest, SetApi, SetHeld } from "../core/api/sets.js";
import { parametersOf } from "./locks.js";
import type { RequestContext } from "./request-context.js";
import { given } from "../core/members.js";

/** Makes the operations on many leases. */
export function setOperations(context: RequestContext, locks: LockApi): SetApi {
  return {
    acquireSet: (request) => acquireSet(context, request),

    async renewSet({ leaseId, keys, leaseMs }) {
      const answers = await forEachKey(keys, (key) => locks.renew({ key, leaseId, leaseMs }));
      const held = answers.flatMap(([, answer]) => (answer.ok ? [answer.lease] : []));
      if (held.length === answers.length) return combined("renewed", leaseId, held);
      const refusals = refusalsIn(answers);
      const losses = refusals.filter(([, { code }]) => code === "lease-lost");
      const lost = losses.map(([key]) => key);
      if (losses[0]) return refuse("lease-lost", { lost, detail: `Lost: ${lost.join(", ")}`, ...given({ reason: losses[0][1].reason }) });
      return refusals[0]?.[1] ?? refuse("internal");
    },

    async releaseSet({ leaseId, keys }) {
      const answers = await forEachKey(keys, (key) => locks.release({ key, leaseId }));
      const states: [key: string, state: LeaseState][] = [];
      for (const [key, answer] of answers) {
        if (!answer.ok) return answer;
        states.push([key, answer.state]);
      }
      // A key may be __proto__, which an assignment would not make a member.
      return { ok: true, states: Object.fromEntries(states) };
    },

    async renewMany({ leases }) {
      return { ok: true, results: await Promise.all(leases.map((lease) => locks.renew(lease))) };
    },
  };
}

async function acquireSet(context: RequestContext, { locks: wanted, ...rest }: AcquireSetRequest): Promise<SetHeld | Refusal> {
  const locks = merged(wanted);
  const commands = locks.map((lock) => {
    const { requestHash, ...parameters } = parametersOf({ ...rest, ...lock });
    // The id belongs to the whole set: with other keys it is a different set.
    return {
      type: "acquire",
      principal: context.principal,
      ...parameters,
      requestHash: digestOf([requestHash, locks]).slice(0, requestHash.length),
    } as const;
  });
  const answers = await context.acquireAll(commands);
  if ("ok" in answers) return answers;
  // No single key's parameters match a set's, so no request queues under a set's id.
  const held = answers.flatMap((answer) => (answer?.ok && "lease" in answer ? [answer] : []));
  if (held.length < commands.length) return refusalOf(refusalsIn(commands.map(({ key }, index) => [key, answers[index]])));
  const how = held.some((answer) => answer.how === "granted") ? "granted" : "replayed";
  const leases = held.map(({ lease }) => lease);
  return combined(how, rest.leaseId, leases);
}

/** Sends a request for each key, once. Returns their answers by key. */
function forEachKey<Answer>(keys: readonly string[], ask: (key: string) => Promise<Answer>) {
  return Promise.all(Array.from(new Set(keys), async (key) => [key, await ask(key)] as const));
}

/** Returns each key once, in order. A key that is named in both modes is exclusive. */
function merged(wanted: AcquireSetRequest["locks"]): readonly { readonly key: string; readonly mode: Mode }[] {
  const modes = new Map<string, Mode>();
  for (const { key, mode = "exclusive" } of wanted) modes.set(key, modes.get(key) === "exclusive" ? "exclusive" : mode);
  return Array.from(modes, ([key, mode]) => ({ key, mode })).sort((a, b) => (a.key < b.key ? -1 : 1));
}

function refusalsIn(answers: readonly (readonly [key: string, answer: { readonly ok: boolean } | undefined])[]) {
  return answers.flatMap(([key, answer]) => (answer && !answer.ok ? [[key, answer as Refusal] as const] : []));
}

/** Combines the set's leases into one: each figure is that of the key with the least. */
function combined(how: SetHeld["how"], leaseId: string, leases: readonly LeaseView[]): SetHeld {
  const least = (name: "leaseMs" | "remainingMs" | "renewAfterMs"): number => Math.min(...leases.map((lease) => lease[name]));
  return {
    ok: true,
    how,
    leaseId,
    fencingTokens: Object.fromEntries(leases.map(({ key, fencingToken }) => [key, fencingToken])),
    leaseMs: least("leaseMs"),
    remainingMs: least("remainingMs"),
    renewAfterMs: least("renewAfterMs"),
    serverTimeMs: Math.max(...leases.map(({ serverTimeMs }) => serverTimeMs)),
  };
}

/** Combines the refusals. Held keys are `blocking`; any other refusal is the whole set's, and names its key. */
function refusalOf(refusals: ReturnType<typeof refusalsIn>): Refusal {
  const other = refusals.find(([, { code }]) => code !== "locked");
  if (other) return { ...other[1], detail: `${other[0]}: ${other[1].detail}` };
  const blocking = refusals.map(([key]) => key);
  const retryAfterMs = Math.max(...refusals.map(([, refusal]) => refusal.retryAfterMs ?? 0));
  return refuse("locked", { blocking, retryAfterMs, detail: `Held by others: ${blocking.join(", ")}` });
}
