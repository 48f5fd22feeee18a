/** The operations on many leases at once. An acquire of a set is one transaction; everything else is one request per key, in parallel. */
import { digestOf } from "../core/canonical.js";
import type { Held, LeaseState, LeaseView } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import type { LockApi } from "../core/api/locks.js";
import type { Mode } from "../core/record.js";
import type { AcquireSetRequest, SetApi, SetHeld } from "../core/api/sets.js";
import { parametersOf } from "./locks.js";
import type { Requests } from "./request.js";
import { given } from "../core/members.js";

/** Makes the operations on many leases. */
export function setOperations(requests: Requests, locks: LockApi): SetApi {
  return {
    acquireSet: (request) => acquireSet(requests, request),

    async renewSet({ leaseId, keys, leaseMs }) {
      const names = [...new Set(keys)];
      const answers = await Promise.all(names.map((key) => locks.renew({ key, leaseId, leaseMs })));
      const held = answers.flatMap((answer) => (answer.ok ? [answer.lease] : []));
      if (held.length === names.length) return together("renewed", leaseId, held);
      const losses = answers.flatMap((answer, index) => (isLost(answer) ? [{ key: names[index] ?? "", reason: answer.reason }] : []));
      const lost = losses.map(({ key }) => key);
      if (lost.length > 0)
        return refuse("lease-lost", { lost, detail: `Lost: ${lost.join(", ")}`, ...given({ reason: losses[0]?.reason }) });
      return answers.find((answer): answer is Refusal => !answer.ok) ?? refuse("internal");
    },

    async releaseSet({ leaseId, keys }) {
      const names = [...new Set(keys)];
      const answers = await Promise.all(names.map((key) => locks.release({ key, leaseId })));
      const states: [key: string, state: LeaseState][] = [];
      for (const [index, answer] of answers.entries()) {
        if (!answer.ok) return answer;
        states.push([names[index] ?? "", answer.state]);
      }
      // A key may be __proto__, which an assignment would not make a member.
      return { ok: true, states: Object.fromEntries(states) };
    },

    async renewMany({ leases }) {
      return { ok: true, results: await Promise.all(leases.map((lease) => locks.renew(lease))) };
    },
  };
}

/** Acquires all keys in one transaction. */
async function acquireSet(requests: Requests, { locks: wanted, ...rest }: AcquireSetRequest): Promise<SetHeld | Refusal> {
  const locks = merged(wanted);
  const commands = locks.map((lock) => {
    const { requestHash, ...parameters } = parametersOf({ ...rest, ...lock });
    // The id belongs to the whole set: with other keys it is a different set.
    return {
      type: "acquire",
      principal: requests.principal,
      ...parameters,
      requestHash: digestOf([requestHash, locks]).slice(0, requestHash.length),
    } as const;
  });
  const answers = await requests.applyAll(commands);
  if ("ok" in answers) return answers;
  // No single key's parameters match a set's, so no request queues under a set's id.
  const held = answers.flatMap((answer) => (answer?.ok && "lease" in answer ? [answer] : []));
  if (held.length === commands.length) {
    const how = held.some((answer) => answer.how === "granted") ? "granted" : "replayed";
    return together(
      how,
      rest.leaseId,
      held.map(({ lease }) => lease),
    );
  }
  return refusalOf(
    answers,
    commands.map(({ key }) => key),
  );
}

/** Returns each key once, in order. A key that is named in both modes is exclusive. */
function merged(wanted: AcquireSetRequest["locks"]): readonly { readonly key: string; readonly mode: Mode }[] {
  const modes = new Map<string, Mode>();
  for (const { key, mode = "exclusive" } of wanted) modes.set(key, modes.get(key) === "exclusive" ? "exclusive" : mode);
  return Array.from(modes, ([key, mode]) => ({ key, mode })).sort((a, b) => (a.key < b.key ? -1 : 1));
}

function isLost(answer: Held | Refusal): answer is Refusal {
  return !answer.ok && answer.code === "lease-lost";
}

/** Combines the set's leases into one: each figure is that of the key with the least. */
function together(how: SetHeld["how"], leaseId: string, leases: readonly LeaseView[]): SetHeld {
  return {
    ok: true,
    how,
    leaseId,
    fencingTokens: Object.fromEntries(leases.map(({ key, fencingToken }) => [key, fencingToken])),
    leaseMs: Math.min(...leases.map(({ leaseMs }) => leaseMs)),
    remainingMs: Math.min(...leases.map(({ remainingMs }) => remainingMs)),
    renewAfterMs: Math.min(...leases.map(({ renewAfterMs }) => renewAfterMs)),
    serverTimeMs: Math.max(...leases.map(({ serverTimeMs }) => serverTimeMs)),
  };
}

/** Combines the refusals. Held keys are `blocking`; any other refusal is the whole set's, and names its key. */
function refusalOf(answers: readonly ({ readonly ok: boolean } | undefined)[], keys: readonly string[]): Refusal {
  const refusals = keys.flatMap((key, index) => {
    const answer = answers[index];
    return answer && !answer.ok ? [[key, answer as Refusal] as const] : [];
  });
  const other = refusals.find(([, { code }]) => code !== "locked");
  if (other) return { ...other[1], detail: `${other[0]}: ${other[1].detail}` };
  const blocking = refusals.map(([key]) => key);
  const retryAfterMs = Math.max(...refusals.map(([, refusal]) => refusal.retryAfterMs ?? 0));
  return refuse("locked", { blocking, retryAfterMs, detail: `Held by others: ${blocking.join(", ")}` });
}
