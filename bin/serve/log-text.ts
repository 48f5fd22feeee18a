/** The service's log for people: a line for each change of a key's holders and for each refusal. */
import type { LogLine } from "../../lib/dynamodb.js";
import { formatDuration } from "../duration.js";
import { plain } from "../terminal.js";

/** The longest name of an event. */
const EVENT_CHARS = 11;

/** Returns the line: time, event, key, owner, and in parentheses what else is known. */
export function logText(line: LogLine): string {
  const { event, kind, model, id, operateAtMs, owner } = line;
  const key = (kind === "run" ? "run " : "") + (model === "" ? id : `${model}_${id}`);
  const details = detailsOf(line).join(", ");
  const time = new Date(operateAtMs).toISOString().slice(11, 23);
  return plain(`${time} ${event.padEnd(EVENT_CHARS)} ${key} ${owner || "-"}${details === "" ? "" : ` (${details})`}`);
}

function detailsOf({ fencingToken, attempt, outcome, mode, position, waitedMs, heldMs, reason, repeated }: LogLine): readonly string[] {
  return [
    fencingToken === undefined ? "" : `token ${fencingToken}`,
    attempt === undefined ? "" : `attempt ${attempt}`,
    outcome ?? "",
    mode === undefined ? "" : `now ${mode}`,
    position === undefined ? "" : `place ${position}`,
    waitedMs === undefined ? "" : `waited ${formatDuration(waitedMs)}`,
    heldMs === undefined ? "" : `held ${formatDuration(heldMs)}`,
    reason ?? "",
    repeated === true ? "again" : "",
  ].filter((detail) => detail !== "");
}
