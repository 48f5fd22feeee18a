/** Requests for the page's data and changes. The page's entry says by which way: its own server, or the API that serves it. */
import type { ApiFailure } from "../data.js";

/** A refusal or failure, as an error. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: string;
  readonly status: number | undefined;
  readonly next: string;

  constructor({ code, message, status, next = "" }: ApiFailure) {
    super(message);
    this.code = code;
    this.status = status;
    this.next = next;
  }
}

/** The right that every look and change needs. */
export const RIGHT = "it needs grantAdmin, or one of the stack's adminScopes (locks:admin by default)";

/** Returns a failure in its own words as a sentence, with what the user may do next. */
export function wordsOf(error: Error): string {
  const { message } = error;
  const next = error instanceof ApiError ? error.next : "";
  return `${message}${/[.?!]$/.test(message) ? "" : "."} ${next}`.trim();
}

/** A way to the data. Each call throws ApiError for a refusal or failure. A read ends when its reader aborts. */
export interface DataSource {
  read(path: string, query: URLSearchParams, reader: AbortSignal): Promise<unknown>;
  change(path: string, body: Readonly<Record<string, unknown>>): Promise<unknown>;
}

let way: DataSource | undefined;

/** Sends the requests from now on by `chosen`. */
export function readFrom(chosen: DataSource): void {
  way = chosen;
}

/** Sends a request. Returns the response with its JSON. @throws ApiError saying `silence` if there is no answer, or that it is another's */
export async function send(
  url: string,
  init: RequestInit,
  silence: string,
): Promise<{ readonly response: Response; readonly value: unknown }> {
  const response = await fetch(url, init).catch(() => {
    throw new ApiError({ code: "unreachable", message: silence });
  });
  const value: unknown = await response.json().catch(() => undefined);
  if (typeof value === "object" && value !== null) return { response, value };
  throw new ApiError({
    code: "no-answer",
    message: `Something else answered, with status ${response.status} and a page that is no answer.`,
  });
}

/** Reads data. @throws ApiError */
export async function read<T>(path: string, query: Readonly<Record<string, string | number>>, reader: AbortSignal): Promise<T> {
  const parameters = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value === "" ? [] : [[name, String(value)]])));
  return (await way?.read(path, parameters, reader)) as T;
}

/** Makes a change. @throws ApiError */
export async function change<T>(path: string, body: object): Promise<T> {
  return (await way?.change(path, { ...body })) as T;
}
