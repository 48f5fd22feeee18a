/** The outcome of a run: as the service stores it, and as its callers get it. */
import { isA } from "../../../core/brand.js";
import type { OutcomeInput, Replayed } from "../../../core/api/runs.js";
import * as LIMITS from "../../../core/request-limits.js";
import { FinalError, LockError, RunFailedError } from "../../wire/errors.js";
import { type KeptError, errorFromJson, errorToJson, fromJson, toJson } from "./json-codec.js";
import type { RunOptions } from "./run-options.js";

/** The outcome of the work. */
export interface RunResult<T> {
  readonly value: T;
  /** True if the work was done in an earlier call or by another caller. */
  readonly replayed: boolean;
  /** The number of the attempt that succeeded; 0 if the work ran without a run (`whenUnavailable: "proceed"`). */
  readonly attempt: number;
  /** True if the value was not stored (`largeResult: "omit"`): a replay has `undefined` as its value. */
  readonly resultOmitted?: true;
}

/** The end of work that returned. */
export interface Success<T> {
  readonly value: T;
  readonly outcome: OutcomeInput;
  /** The reason why the outcome is without the value. */
  readonly omittedBecause?: string;
}

/** Returns the end of work that returned `value`. */
export function successOf<T>(value: T): Success<T> {
  const result = resultOf(value);
  if ("because" in result) return { value, outcome: { state: "succeeded", resultOmitted: true }, omittedBecause: result.because };
  return { value, outcome: { state: "succeeded", ...(result.json !== undefined && { result: result.json }) } };
}

/** Returns the outcome of work that threw `error`. */
export function failureOf(error: unknown, isFinal: RunOptions["isFinal"]): OutcomeInput {
  return { state: "failed", error: storedErrorOf(error), retryable: !isFinalError(error, isFinal) };
}

/** Returns the stored form of what was thrown. A getter of it that throws must not stop the run from being recorded. */
function storedErrorOf(error: unknown): KeptError & { readonly data?: unknown } {
  try {
    return { ...errorToJson(error), ...dataOf(error) };
  } catch {
    return { name: "Error", message: "unreadable" };
  }
}

/** True if the error is final. If `isFinal` throws, the error is not final and the next caller starts again. */
function isFinalError(error: unknown, isFinal: RunOptions["isFinal"]): boolean {
  try {
    return isA(error, FinalError) || isFinal?.(error) === true;
  } catch {
    return false;
  }
}

/** Returns the recorded outcome as the result of a call. @throws RunFailedError for a final error */
export function replayed<T>(key: string, answer: Replayed, { largeResult }: RunOptions): RunResult<T> {
  const { state, attempt, result, error, resultOmitted } = answer;
  if (state === "failed")
    throw new RunFailedError(key, errorFromJson(error), attempt, fromJson((error as Partial<FinalError> | null)?.data));
  if (resultOmitted && largeResult !== "omit") throw omittedError(key, attempt, "its caller was told why");
  const value = fromJson(result) as T;
  return { value, replayed: true, attempt, ...(resultOmitted && { resultOmitted }) };
}

/** Returns the result of the attempt that did the work. @throws LockError if its value could not be stored */
export function firstResult<T>(key: string, attempt: number, success: Success<T>, { largeResult }: RunOptions): RunResult<T> {
  const { value, omittedBecause } = success;
  if (omittedBecause === undefined) return { value, replayed: false, attempt };
  if (largeResult !== "omit") throw omittedError(key, attempt, omittedBecause);
  return { value, replayed: false, attempt, resultOmitted: true };
}

/** Returns the data of a final error in its stored form, if it can be stored. The rest of the error's size is for its name and message. */
function dataOf(error: unknown): { readonly data?: unknown } {
  if (!isA(error, FinalError)) return {};
  const result = resultOf(error.data, LIMITS.resultBytes / 2);
  return "json" in result && result.json !== undefined ? { data: result.json } : {};
}

/** Returns the value in its stored form, or the reason why it can't be stored. */
function resultOf(value: unknown, mostBytes = LIMITS.resultBytes): { readonly json: unknown } | { readonly because: string } {
  try {
    const json = toJson(value, "result");
    const bytes = json === undefined ? 0 : jsonBytes(json);
    return bytes > mostBytes ? { because: `it is ${bytes} bytes as JSON, of at most ${mostBytes}` } : { json };
  } catch (error) {
    // Includes errors of toJSON methods and getters: the work is done anyway.
    return { because: errorToJson(error).message };
  }
}

/** Returns the size of a JSON value as text, in bytes. */
export function jsonBytes(json: unknown): number {
  return new TextEncoder().encode(JSON.stringify(json)).length;
}

function omittedError(key: string, attempt: number, because: string): LockError {
  const message = `run ${key}: it succeeded in attempt ${attempt}, but its result was not kept: ${because}`;
  return new LockError(message, { code: "result-omitted", definite: false, retry: "never" });
}
