/**
 * The printed form of a log line. CloudWatch charges for every byte, so nothing is printed that holds for every line or that CloudWatch
 * adds itself. The metric filters and the saved query of infra/ read these fields.
 */
import { SHARED_NAMESPACE } from "../lib/service/caller.js";
import type { LogLine } from "../lib/service/log.js";

/**
 * Returns the printed form: without `operateAtMs`, because CloudWatch keeps the time of each line, and without `namespace`, `kind` and
 * `owner` where they are `default`, `lock` and empty. `prefix` is the longest of `prefixes` with which the key begins, if there is one.
 */
export function printed({ operateAtMs: _time, namespace, kind, owner, ...line }: LogLine, prefixes: readonly string[]): object {
  return {
    ...line,
    ...(namespace !== SHARED_NAMESPACE && { namespace }),
    ...(kind !== "lock" && { kind }),
    ...(owner && { owner }),
    ...prefixOf(line, prefixes),
  };
}

/** Returns the printed form of a refusal that is only counted: the fields that metrics read. */
export function printedCount({ event, reason, ...line }: LogLine, prefixes: readonly string[]): object {
  return { event, reason, ...prefixOf(line, prefixes) };
}

function prefixOf({ model, id }: Pick<LogLine, "model" | "id">, prefixes: readonly string[]): { readonly prefix?: string } {
  const key = model === "" ? id : `${model}_${id}`;
  const [prefix] = prefixes.filter((one) => key.startsWith(one)).toSorted((a, b) => b.length - a.length);
  return prefix === undefined ? {} : { prefix };
}
