/** The values of options, read from text. What can't be is refused by the parser, which names the option. */
import { InvalidArgumentError } from "commander";
import { parseDuration } from "./duration.js";

/** A duration in ms. */
export function duration(text: string): number {
  const parsed = parseDuration(text);
  if ("wrong" in parsed) throw new InvalidArgumentError(parsed.wrong);
  return parsed.ms;
}

/** A duration in ms, or for ever. */
export function durationOrForever(text: string): number | "forever" {
  return text === "forever" ? text : duration(text);
}

/** A whole number, not below nothing. */
export function count(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) throw new InvalidArgumentError("It must be a whole number.");
  return number;
}

/** How many to show: some. */
export function some(text: string): number {
  const number = count(text);
  if (number < 1) throw new InvalidArgumentError("It must be at least 1.");
  return number;
}

/** The status of a process. */
export function exitStatus(text: string): number {
  const status = count(text);
  if (status > 255) throw new InvalidArgumentError("A status is from 0 to 255.");
  return status;
}

/** Statuses with commas between them. */
export function exitStatuses(text: string): readonly number[] {
  return text.split(",").map(exitStatus);
}
