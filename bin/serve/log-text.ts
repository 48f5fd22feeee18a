/** The service's log for people: a line for each change of a key's holders and for each refusal. */
import type { LogLine } from "../../lib/dynamodb.js";
import { formatDuration } from "../duration.js";
import { endOf, wordOf } from "../held-text.js";
import { plain } from "../plain-text.js";

/** The longest name of an event. */
const EVENT_CHARS = 11;

/** Returns the line: time (UTC), event, key, owner, and in parentheses what else is known. */
export function logText(line: LogLine): string {
  const { kind, model, id, operateAtMs, owner } = line;
  const key = (kind === "run" ? "run " : "") + (model === "" ? id : `${model}_${id}`);
  const details = detailsOf(line).join(", ");
  const time = new Date(operateAtMs).toISOString().slice(11);
  return plain(`${time} ${wordOf(line).padEnd(EVENT_CHARS)} ${key} ${owner || "-"}${details === "" ? "" : ` (${details})`}`);
}

function detailsOf(line: LogLine): readonly string[] {
  const { fencingToken, attempt, outcome, mode, position, waitedMs, repeated } = line;
  const { why, held } = endOf(line);
  return [
    fencingToken === undefined ? "" : `token ${fencingToken}`,
    attempt === undefined ? "" : `attempt ${attempt}`,
    outcome ?? "",
    mode === undefined ? "" : `now ${mode}`,
    position === undefined ? "" : `place ${position}`,
    waitedMs === undefined ? "" : `waited ${formatDuration(waitedMs)}`,
    held,
    why,
    repeated === true ? "again" : "",
  ].filter((detail) => detail !== "");
}
