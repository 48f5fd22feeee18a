/**
 * Chooses the transport for a client's requests, and gives the reason. The built-in transport costs a third of the CPU. It is used if
 * everything that the client carries can be read from its configuration. Anything else that a user added to the client (tracing, a proxy's
 * handler, a logger) was meant to see every request. Then the requests go through the client, unchanged.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { answerWatchers, CLOCK_MIDDLEWARE } from "./table-clock.js";
import { builtInCalls } from "./built-in-calls.js";
import type { TableCalls } from "./calls.js";
import { deferredCalls } from "./calls.js";
import type { ClientConfig } from "./client-settings.js";
import { configOf, readSettings } from "./client-settings.js";
import { sdkCalls } from "./sdk-calls.js";

/** The preferred transport: `"auto"` uses the built-in one if possible, `"sdk"` always uses the client. */
export type TransportOption = "auto" | "sdk";

/** The transport that a client's requests use now, with the reason if it is the AWS SDK's client. */
export type ChosenTransport = { readonly transport: "built-in" } | { readonly transport: "sdk"; readonly reason: string };

/** Returns the transport that requests through `client` use now. Sends nothing. Later additions to the client may change the transport. */
export async function transportOf(client: DynamoDBClient): Promise<ChosenTransport> {
  const { reason } = isOurs(client) ? await chosen(client) : { reason: "it is of another class than this package's DynamoDBClient" };
  return reason === undefined ? { transport: "built-in" } : { transport: "sdk", reason };
}

/**
 * Returns the operations, sent through `client` or past it. Checks each request: a middleware added later applies from the next request
 * on.
 */
export function callsThrough(client: DynamoDBClient, option: TransportOption = "auto"): TableCalls {
  if (option === "sdk" || !isOurs(client)) return sdkCalls(client);
  return deferredCalls(async () => (await chosen(client)).calls);
}

/** True if the client is of exactly this class. The behaviour of others (from another copy of the SDK or a simulation) isn't known. */
function isOurs(client: DynamoDBClient): boolean {
  return Object.getPrototypeOf(client) === DynamoDBClient.prototype;
}

interface Choice {
  readonly calls: TableCalls;
  readonly reason: string | undefined;
}

/** A client that was checked. */
interface Checked {
  readonly sdk: TableCalls;
  /** The parts that were checked. If one is replaced, the client is checked again. */
  readonly parts: readonly unknown[];
  /** True if a middleware was added since. */
  isStale: boolean;
  readonly choice: Promise<Choice>;
}

const checked = new WeakMap<DynamoDBClient, Checked>();

function chosen(client: DynamoDBClient): Promise<Choice> {
  const before = checked.get(client);
  if (before && !before.isStale && partsOf(client).every((part, index) => part === before.parts[index])) return before.choice;
  const sdk = before?.sdk ?? sdkCalls(client);
  const now: Checked = { sdk, parts: partsOf(client), isStale: false, choice: choose(client, sdk) };
  checked.set(client, now);
  watchStack(client);
  return now.choice;
}

async function choose(client: DynamoDBClient, sdk: TableCalls): Promise<Choice> {
  const reason = reasonForSdk(client);
  if (reason !== undefined) return { calls: sdk, reason };
  const settings = await readSettings(client, () => answerWatchers(client)).catch(
    (error: unknown) => `its configuration can't be read: ${String(error)}`,
  );
  if (typeof settings === "string") return { calls: sdk, reason: settings };
  return { calls: builtInCalls(settings), reason: undefined };
}

function partsOf(client: DynamoDBClient): readonly unknown[] {
  const { send } = client as unknown as Sends;
  const { requestHandler, signer, endpointProvider, logger, credentials } = client.config as unknown as Readonly<Record<string, unknown>>;
  return [client.middlewareStack, send, requestHandler, signer, endpointProvider, logger, credentials];
}

const watchedStacks = new WeakSet<object>();

/** Notes when a middleware is added. The stack itself offers only a sorted list, which takes longer than signing a request. */
function watchStack(client: DynamoDBClient): void {
  const stack = client.middlewareStack as unknown as Record<"add" | "addRelativeTo", ((...args: unknown[]) => void) | undefined>;
  if (watchedStacks.has(stack)) return;
  watchedStacks.add(stack);
  for (const method of ["add", "addRelativeTo"] as const) {
    const add = stack[method];
    if (!add) continue;
    stack[method] = (...args) => {
      add(...args);
      const now = checked.get(client);
      if (now) now.isStale = true;
    };
  }
}

/** Returns the reason why requests must go through `client`; undefined if there is none. */
function reasonForSdk(client: DynamoDBClient): string | undefined {
  const fresh = freshClient();
  // Tracers and mocks replace `send`. The SDK's own `send` resolves a command's middleware.
  const { send } = client as unknown as Sends;
  if (send !== (fresh as unknown as Sends).send || !String(send).includes("resolveMiddleware")) return "its send() was replaced";
  const added = withoutOwn(client).filter((entry) => !withoutOwn(fresh).includes(entry));
  if (added.length > 0) return `middleware was added to it: ${added.join(", ")}`;
  if (withoutOwn(client).length < withoutOwn(fresh).length) return "middleware was removed from it";
  const mine = configOf(client) as ClientConfig & Customizable;
  const its = configOf(fresh) as ClientConfig & Customizable;
  if (mine.requestHandler.constructor !== its.requestHandler.constructor || Object.hasOwn(mine.requestHandler, "handle"))
    return "it has a request handler of its own";
  if (mine.logger?.constructor !== its.logger?.constructor) return "it has a logger";
  if (mine.signerConstructor !== undefined || !String(mine.signer).includes("signerConstructor")) return "it has a signer of its own";
  if (
    mine.httpAuthSchemeProvider !== its.httpAuthSchemeProvider ||
    String(mine.httpAuthSchemes?.map(nameOf)) !== String(its.httpAuthSchemes?.map(nameOf))
  )
    return "it has an authentication scheme of its own";
  if (mine.protocol?.constructor !== its.protocol?.constructor) return "it has a protocol of its own";
  return undefined;
}

/** The one method that all commands go through. */
interface Sends {
  readonly send: () => unknown;
}

/** The members of a client's configuration that are compared with those of an unmodified client. */
interface Customizable {
  readonly logger?: object;
  readonly signer?: unknown;
  readonly signerConstructor?: unknown;
  readonly httpAuthSchemeProvider?: unknown;
  readonly httpAuthSchemes?: readonly { readonly schemeId: string; readonly signer: object }[];
  readonly protocol?: object;
}

function nameOf({ schemeId, signer }: { readonly schemeId: string; readonly signer: object }): string {
  return `${schemeId} ${signer.constructor.name}`;
}

function withoutOwn({ middlewareStack }: DynamoDBClient): readonly string[] {
  return middlewareStack.identify().filter((entry) => !entry.startsWith(CLOCK_MIDDLEWARE));
}

let fresh: DynamoDBClient | undefined;

/** Returns an unmodified client, for comparison. It never sends. */
function freshClient(): DynamoDBClient {
  return (fresh ??= new DynamoDBClient({ region: "us-east-1", credentials: { accessKeyId: "none", secretAccessKey: "none" } }));
}
