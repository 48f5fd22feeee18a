/**
 * Which transport a client's requests take, and why. The built-in one costs a third of the CPU; it is taken when all that
 * the client carries can be read from its configuration. Whatever else a user has hung onto it (tracing, a proxy's handler, a
 * logger) was meant to meet every request: then the requests go through the client, as they are.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { answerWatchers, CLOCK_MIDDLEWARE } from "./table-clock.js";
import { builtInCalls } from "./built-in-calls.js";
import type { TableCalls } from "./calls.js";
import type { ClientConfig } from "./client-settings.js";
import { configOf, readSettings } from "./client-settings.js";
import { sdkCalls } from "./sdk-calls.js";

/** Which transport is wanted: `"auto"` takes the built-in one where it can, `"sdk"` always goes through the client. */
export type TransportOption = "auto" | "sdk";

/** The transport that a client's requests take now; through the AWS SDK's client, with the reason. */
export type ChosenTransport = { readonly transport: "built-in" } | { readonly transport: "sdk"; readonly reason: string };

/** Tells which transport the requests through `client` take now. Sends nothing; what is added to the client later may change it. */
export async function transportOf(client: DynamoDBClient): Promise<ChosenTransport> {
  const { reason } = isOurs(client) ? await chosen(client) : { reason: "it is of another class than this package's DynamoDBClient" };
  return reason === undefined ? { transport: "built-in" } : { transport: "sdk", reason };
}

/** The operations, sent through `client` or past it. Looks at each request: a middleware that is added later is met from the next request on. */
export function callsThrough(client: DynamoDBClient, wanted: TransportOption = "auto"): TableCalls {
  if (wanted === "sdk" || !isOurs(client)) return sdkCalls(client);
  return {
    updateItem: async (input) => (await chosen(client)).calls.updateItem(input),
    getItem: async (input) => (await chosen(client)).calls.getItem(input),
    query: async (input) => (await chosen(client)).calls.query(input),
    transactWriteItems: async (input) => (await chosen(client)).calls.transactWriteItems(input),
  };
}

/** Tells a client of just this class. What another one does, of another copy of the SDK or of a simulation, isn't known. */
function isOurs(client: DynamoDBClient): boolean {
  return Object.getPrototypeOf(client) === DynamoDBClient.prototype;
}

interface Choice {
  readonly calls: TableCalls;
  readonly reason: string | undefined;
}

/** A client that was looked at. */
interface Looked {
  readonly sdk: TableCalls;
  /** The parts that were looked at: another one is a reason to look again. */
  readonly parts: readonly unknown[];
  /** Set when a middleware was added since. */
  isStale: boolean;
  readonly choice: Promise<Choice>;
}

const looked = new WeakMap<DynamoDBClient, Looked>();

function chosen(client: DynamoDBClient): Promise<Choice> {
  const before = looked.get(client);
  if (before && !before.isStale && partsOf(client).every((part, index) => part === before.parts[index])) return before.choice;
  const sdk = before?.sdk ?? sdkCalls(client);
  const now: Looked = { sdk, parts: partsOf(client), isStale: false, choice: choose(client, sdk) };
  looked.set(client, now);
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

/** Notes when a middleware is added. The stack tells its own only as a sorted list, which takes longer than signing a request. */
function watchStack(client: DynamoDBClient): void {
  const stack = client.middlewareStack as unknown as Record<"add" | "addRelativeTo", ((...args: unknown[]) => void) | undefined>;
  if (watchedStacks.has(stack)) return;
  watchedStacks.add(stack);
  for (const method of ["add", "addRelativeTo"] as const) {
    const add = stack[method];
    if (!add) continue;
    stack[method] = (...args) => {
      add(...args);
      const now = looked.get(client);
      if (now) now.isStale = true;
    };
  }
}

/** Why requests have to go through `client`; undefined when nothing on it asks for that. */
function reasonForSdk(client: DynamoDBClient): string | undefined {
  const fresh = freshClient();
  // Tracers and mocks replace `send`; the SDK's own resolves a command's middleware.
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

/** Members of a client's configuration that are compared with those of a client that nobody touched. */
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

/** A client that nobody touched, to compare with. It never sends. */
function freshClient(): DynamoDBClient {
  return (fresh ??= new DynamoDBClient({ region: "us-east-1", credentials: { accessKeyId: "none", secretAccessKey: "none" } }));
}
