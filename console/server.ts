/**
 * The console over HTTP: its page at `/console` and its data below `/console/api/`. A browser that asks for `/` is sent there. It takes no
 * other requests, so it can stand before another server. Text from keys, owners and values never becomes markup: the page gets it as JSON.
 */
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { LockError } from "../lib/index.js";
import type { ApiFailure } from "./data.js";
import { type HandlerOptions, handlersOf } from "./handlers.js";
import { type Assets, type Bundled, assetsOf, MADE, PAGE_HEADERS } from "./files.js";
import { partsOf } from "./key-parts.js";
import { type BrowserSession, refusalOf, sessionOf } from "./browser-session.js";
import { isWrongAddress } from "./text/wrong-address.js";

export const CONSOLE_PATH = "/console";

/** The parts of a console, and the secret of its address. */
export interface ConsoleOptions extends HandlerOptions {
  /** The secret that the page exchanges once for a cookie. @default none: for a service that checks nobody's identity anyway */
  readonly secret?: string;
  /** Returns what the user may do about an error; `""` for nothing. @default nothing */
  readonly adviceOn?: (error: unknown) => string;
  /** Returns the page's files. @default those of the package */
  readonly assets?: () => Promise<Assets>;
}

/** Takes a request for the console and returns true; false for any other path. */
export type Console = (request: IncomingMessage, response: ServerResponse) => boolean;

/** The path at which the secret is exchanged. */
const SESSION = "session";
const STRANGER =
  "This browser doesn't know the running console. Open the address that holdfast ui printed; it works once, for one browser. If it was opened before, start holdfast ui again";

/** The longest body of a change, in bytes: a reason and a key, with room. */
const BODY_MAX_BYTES = 16_384;

interface ConsoleResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly cookie?: string;
}

/** Makes the console. */
export function consoleOf(options: ConsoleOptions): Console {
  const { secret, adviceOn = () => "", assets: load = loadAssets } = options;
  const handlers = handlersOf({ partsOf, ...options });
  const session = secret === undefined ? undefined : sessionOf(secret);
  let loading: Promise<Assets> | undefined;

  return (request, response) => {
    const [path = "/", query] = (request.url ?? "/").split("?", 2);
    if (isBrowserAt(request, path)) {
      response.writeHead(302, { location: CONSOLE_PATH }).end();
      return true;
    }
    if (path !== CONSOLE_PATH && !path.startsWith(`${CONSOLE_PATH}/`)) return false;
    const reader = new AbortController();
    response.on("close", () => reader.abort());
    void reply(request, path, new URLSearchParams(query), reader.signal)
      .catch((error: unknown) => failed(error, adviceOn(error)))
      .then(({ status, type, body, cookie }) => {
        response.writeHead(status, { ...PAGE_HEADERS, "content-type": type, ...(cookie !== undefined && { "set-cookie": cookie }) });
        response.end(request.method === "HEAD" ? undefined : body);
      });
    return true;
  };

  async function reply(request: IncomingMessage, path: string, query: URLSearchParams, reader: AbortSignal): Promise<ConsoleResponse> {
    const [, , part = "", name = ""] = path.split("/");
    const isData = part === "api";
    const refusal = refusalOf(request, isData);
    if (refusal !== undefined) return refused(refusal);
    if (isData && session && name === SESSION && request.method === "POST") return open(session, request);
    if (isData && session?.isOpenFor(request) === false) return refused(STRANGER);
    if (request.method === "POST") return isData ? change(name, request) : noSuch(path);
    if (request.method !== "GET" && request.method !== "HEAD") return json(405, { code: "console", message: "Only GET and POST" });
    if (isData) {
      const answer = Object.hasOwn(handlers.answers, name) ? handlers.answers[name] : undefined;
      return answer ? json(200, await answer(query, reader)) : noSuch(path);
    }
    const assets = await (loading ??= load());
    const file = Object.hasOwn(assets, part || "page") ? assets[part || "page"] : undefined;
    return file ? { status: 200, ...file } : noSuch(path);
  }

  async function open(session: BrowserSession, request: IncomingMessage): Promise<ConsoleResponse> {
    const cookie = session.open((await jsonBodyOf(request))?.["secret"], request);
    return cookie === undefined ? refused(STRANGER) : { ...json(200, { open: true }), cookie };
  }

  async function change(name: string, request: IncomingMessage): Promise<ConsoleResponse> {
    const make = Object.hasOwn(handlers.changes, name) ? handlers.changes[name] : undefined;
    if (!make) return refused("This console may only read: start it with --allow-changes to make changes");
    const body = await jsonBodyOf(request);
    return body ? json(200, await make(body)) : json(400, { code: "console", message: "The body must be a JSON object" });
  }
}

/** True if a person opens the address of the service in a browser. For a program, the API answers. */
function isBrowserAt({ method, headers }: IncomingMessage, path: string): boolean {
  return method === "GET" && path === "/" && headers.accept?.includes("text/html") === true;
}

/** Returns the body as an object; undefined if it is too long or none. */
async function jsonBodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>> | undefined> {
  let text = "";
  for await (const chunk of request as AsyncIterable<Buffer>) if (text.length <= BODY_MAX_BYTES) text += chunk.toString("latin1");
  if (text.length > BODY_MAX_BYTES) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "latin1").toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

function json(status: number, value: unknown): ConsoleResponse {
  return { status, type: "application/json", body: JSON.stringify(value) };
}

function refused(message: string): ConsoleResponse {
  return json(403, { code: "console", message });
}

function noSuch(path: string): ConsoleResponse {
  return json(404, { code: "console", message: `The console has nothing at ${path}` });
}

/** Answers a failure of the service or the table in its own words, with what the user may do next. */
function failed(error: unknown, next: string): ConsoleResponse {
  const message = error instanceof Error ? (error.message.split("\n", 1)[0] ?? "") : String(error);
  const told = error instanceof LockError ? error : undefined;
  const failure: ApiFailure =
    told && isWrongAddress(told)
      ? { code: "no-answer", message, next }
      : { code: told?.code ?? "internal", message, status: told?.httpStatus, next };
  return json(failure.code === "invalid-request" ? 400 : 502, failure);
}

/** Returns the page's files. The package has them made; in a clone they are made from their sources at the first request. */
export async function loadAssets(): Promise<Assets> {
  const [page, icon, made] = await Promise.all([readPage("index.html"), readPage("icon.svg"), codeOf()]);
  return assetsOf({ ...made, page, icon });
}

async function codeOf(): Promise<Bundled> {
  if (!import.meta.url.endsWith(".ts")) return { script: await readPage(MADE.script), style: await readPage(MADE.style) };
  const { bundlePage } = await import("./bundle.js");
  return bundlePage();
}

function readPage(name: string): Promise<string> {
  return readFile(new URL(`page/${name}`, import.meta.url), "utf8");
}
