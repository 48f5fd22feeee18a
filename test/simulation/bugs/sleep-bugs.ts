/** The must-fail switches of sleepers: see bugs.ts. */
import type { Bug } from "./bug.js";

const AGENT = "lib/service/agent.ts";

/** Mistakes by which a holder loses its key to an agent, or a sleeper its place. */
export const SLEEP_BUGS: readonly Bug[] = [
  {
    name: "told-beside-who-claimed",
    why: "an agent tells a sleeper that another just claimed for: the slower of the two hears that nobody waits, and ends the lease",
    file: AGENT,
    breaks: "S18",
    edits: [['  if (held && held.grantedAtMs + OTHERS_MS > reading.earliestMs) return "asleep";\n', ""]],
  },
  {
    name: "gone-believed-by-all",
    why: "an agent that found the lease held takes the answer that nobody waits for a death, although another told the target",
    file: AGENT,
    breaks: "S18",
    edits: [["  if (!isClaimed || ", "  if ("]],
  },
  {
    name: "ended-whatever-it-holds",
    why: "an agent that stood still ends the wait of a sleeper that another claimed for meanwhile, and with it the lease",
    file: AGENT,
    breaks: "S18",
    edits: [["{ ...release, onlyWaiting: true }", "release"]],
  },
  {
    name: "offer-lapses-as-a-pollers",
    why: "an offer to a sleeper lapses after 5 s, before any agent sweeps",
    file: "lib/core/lock/expiry.ts",
    breaks: "L8",
    edits: [["(asleep ? DEFAULTS.wakeWindowMs : DEFAULTS.offerWindowMs)", "(asleep ? DEFAULTS.offerWindowMs : DEFAULTS.offerWindowMs)"]],
  },
  {
    name: "asleep-and-granted",
    why: "a request to sleep is granted a free key, and nobody tells its target",
    file: "lib/core/lock/acquire.ts",
    breaks: "S18",
    edits: [["leaseId: arrived.asleep ? undefined : leaseId, isNew: true", "leaseId, isNew: true"]],
  },
  {
    name: "places-of-all-kinds",
    why: "sleepers count against the places of those that poll, who then never get one",
    file: "lib/core/lock/places.ts",
    breaks: "L2",
    edits: [
      ["polls(waiter) === polls(kind) && waiter.asleep === kind.asleep", "polls(waiter) !== polls(kind) || waiter.asleep === kind.asleep"],
    ],
  },
  {
    name: "bytes-of-all-kinds",
    why: "sleepers with long names take the bytes of those that poll",
    file: "lib/core/lock/places.ts",
    breaks: "L2",
    edits: [["(polls(kind) ? 0 : LIMITS.pollersBytes)", "(polls(kind) ? 0 : 0 * LIMITS.pollersBytes)"]],
  },
  {
    name: "deleted-before-it-is-told",
    why: "an agent deletes the sleeper's item before it tells the target: if that fails, nobody ever tells it",
    file: AGENT,
    breaks: "L8",
    edits: [["  if ((await sendToAll(targets,", "  await deps.sleepers.delete(sleeper);\n  if ((await sendToAll(targets,"]],
  },
];
