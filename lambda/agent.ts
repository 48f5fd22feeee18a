/** Assembles the function that wakes sleepers, from its environment. EventBridge invokes it once a minute; its event says nothing. */
import { systemClock } from "../lib/core/time.js";
import type { AgentDeps, Woken } from "../lib/service/agent.js";
import { sweep } from "../lib/service/agent.js";
import { tableClocks } from "../lib/service/clocks.js";
import { withoutLeaseIds } from "../lib/service/log.js";
import { builtInCalls } from "../lib/store/dynamo/built-in-calls.js";
import { createDynamoStore } from "../lib/store/dynamo/dynamo-store.js";
import { environmentSettings } from "../lib/store/dynamo/environment-settings.js";
import { createSleeperStore } from "../lib/store/dynamo/sleeper-store.js";
import { answerWatcher } from "../lib/store/dynamo/table-clock.js";
import type { Environment } from "./compose.js";
import { metricPrefixesOf, policyOf, required, write } from "./compose.js";
import { printed } from "./printed.js";
import { awsTell } from "./tell.js";

/** The parts that a test or a local server replaces. */
export type AgentParts = Partial<Pick<AgentDeps, "tell" | "clock" | "log" | "onFailure">> & { readonly print?: (line: object) => void };

/**
 * Creates the agent for `env`, which has the table and the policy of the other functions. Its second clock is the table's.
 * @throws Error naming the missing or invalid variable, when the function starts
 */
export function composeAgent(
  env: Environment,
  { clock = systemClock, tell = awsTell(env, clock), print = write, log, onFailure = failureLine(print) }: AgentParts = {},
): () => Promise<Readonly<Partial<Record<Woken, number>>>> {
  const prefixes = metricPrefixesOf(env);
  const watcher = answerWatcher(clock);
  const settings = environmentSettings(env, { clock: systemClock, random: Math.random });
  if (typeof settings === "string") throw new Error(settings);
  const place = {
    calls: builtInCalls({ ...settings, watcher }),
    tableName: required(env, "HOLDFAST_TABLE"),
    region: async () => env["AWS_REGION"],
  };
  const store = createDynamoStore({ ...place, policy: policyOf(env), clock, random: Math.random });
  const deps: AgentDeps = {
    store,
    sleepers: createSleeperStore(place),
    tell,
    clocks: tableClocks(clock, watcher.time),
    clock,
    log: log ?? ((line) => print(printed(line, prefixes))),
    onFailure,
  };
  return async () => {
    const counts = await sweep(deps);
    if (Object.keys(counts).some((woken) => woken !== "asleep")) print({ event: "swept", ...counts });
    return counts;
  };
}

function failureLine(print: (line: object) => void): AgentDeps["onFailure"] {
  return (error) => print({ event: "failed", error: withoutLeaseIds(String(error)) });
}
