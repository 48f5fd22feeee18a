/** Parses option values. The parser refuses an invalid value and names the option. */
import { InvalidArgumentError, Option } from "commander";
import type { Rate } from "../lib/index.js";
import { parseDuration } from "../console/text/duration.js";

/** Returns an option that has the value of `text` if it isn't given. Its help shows the default as people write it. */
export function defaulted(flags: string, description: string, parse: (text: string) => unknown, text: string): Option {
  return new Option(flags, description).argParser(parse).default(parse(text), text);
}

/** Parses a duration into ms. */
export function duration(text: string): number {
  const parsed = parseDuration(text);
  if ("wrong" in parsed) throw new InvalidArgumentError(parsed.wrong);
  return parsed.ms;
}

/** Parses a duration into ms, or `forever`. */
export function durationOrForever(text: string): number | "forever" {
  return text === "forever" ? text : duration(text);
}

const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?$/;

/** Parses a time into epoch ms. Without a zone it is local time. */
export function time(text: string): number {
  const parsed = TIME.test(text) ? Date.parse(text.replace(" ", "T")) : NaN;
  if (Number.isNaN(parsed)) throw new InvalidArgumentError("Write it like 2026-11-22T03:00, which is local time, or 2026-11-22T03:00Z.");
  return parsed;
}

/** Parses a whole number of at least 0. */
export const count = whole((number) => number >= 0, "It must be a whole number.");

/** Parses a whole number of at least 1. */
export const some = whole((number) => number >= 1, "It must be at least 1.");

/** The numbers of ports. */
export const PORT_RULE = "from 0 to 65535";

/** True for a TCP port; 0 means any free one. */
export function isPort(number: number): boolean {
  return number <= 65_535;
}

/** Parses a TCP port; 0 means any free one. */
export const port = whole(isPort, `A port is ${PORT_RULE}.`);

/** Parses the exit status of a process. */
export const exitStatus = whole((number) => number <= 255, "A status is from 0 to 255.");

/** Parses the reason of an operator. An empty one is refused before anything is asked for. */
export function reason(text: string): string {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  return text;
}

/** Returns what parses a whole number, and refuses one that breaks a rule. */
function whole(fits: (number: number) => boolean, rule: string): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) throw new InvalidArgumentError("It must be a whole number.");
    if (!fits(number)) throw new InvalidArgumentError(rule);
    return number;
  };
}

/** Parses a rate, such as `100/1m`, or `5/1s/2` with its burst, and adds it to those before it. */
export function rate(text: string, before: readonly Rate[] = []): readonly Rate[] {
  const [many = "", per, burst, ...more] = text.split("/");
  if (per === undefined || more.length > 0) throw new InvalidArgumentError("Write it like 100/1m, or 5/1s/2 for bursts of 2.");
  return [...before, { count: some(many), perMs: duration(per), ...(burst !== undefined && { burst: some(burst) }) }];
}

/** Adds the value of an option that is repeated to those before it. */
export function andBefore(text: string, before?: readonly string[]): readonly string[] {
  return [...(before ?? []), text];
}

/** The number of ports to try if none is given. */
const PORTS = 10;

/** Returns the ports to try: the given one, or else some from `first` on. */
export function portsFrom(first: number, only?: number): readonly number[] {
  return only !== undefined ? [only] : Array.from({ length: PORTS }, (_, at) => first + at);
}

/** Returns the number of words after `--`. */
export function countAfterDashes(argv: readonly string[]): number {
  const dashes = argv.indexOf("--");
  return dashes < 0 ? 0 : argv.length - dashes - 1;
}

/** Parses exit statuses separated by commas. */
export function exitStatuses(text: string): readonly number[] {
  return text.split(",").map(exitStatus);
}
