/**
 * The built-in transport's settings, read from a user's DynamoDB client: its credentials and their refresh, its region, endpoint,
 * connections, time-outs, retries and clock. If a setting can't be read, requests go through the client instead.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Agent } from "node:http";
import { VERSION } from "../../core/version.js";
import type { AnswerWatcher, Destination, TransportSettings } from "./built-in-calls.js";
import type { Endpoint } from "./http-sender.js";
import { endpointAt } from "./http-sender.js";
import type { RetryStrategy } from "./retries.js";
import type { Credentials, Scope } from "./signature.js";
import { signer } from "./signature.js";

/** The members of a client's resolved configuration that are read here. Its type lacks some of them. */
export interface ClientConfig {
  readonly credentials: () => Promise<Credentials & { readonly accountId?: string }>;
  readonly region: () => Promise<string>;
  readonly endpointProvider: (parameters: object) => EndpointV2;
  readonly endpoint?: () => Promise<object>;
  readonly isCustomEndpoint?: boolean;
  readonly ignoreConfiguredEndpointUrls?: boolean;
  readonly serviceConfiguredEndpoint?: () => Promise<string | undefined>;
  readonly useFipsEndpoint: () => Promise<boolean>;
  readonly useDualstackEndpoint: () => Promise<boolean>;
  readonly accountIdEndpointMode?: () => Promise<string>;
  readonly signingRegion?: string;
  readonly signingName?: string;
  readonly retryStrategy: () => Promise<object>;
  readonly disableClockSkewCorrection?: () => Promise<boolean>;
  systemClockOffset?: number;
  readonly defaultUserAgentProvider: () => Promise<readonly (readonly [name: string, version?: string])[]>;
  readonly customUserAgent?: readonly (readonly [name: string, version?: string])[];
  readonly requestHandler: Handler;
}

interface EndpointV2 {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly properties?: { readonly authSchemes?: readonly { readonly signingRegion?: string; readonly signingName?: string }[] };
}

/** The readable members of the SDK's HTTP handler. */
interface Handler {
  config?: HandlerConfig;
  readonly configProvider?: Promise<HandlerConfig>;
}

interface HandlerConfig {
  httpAgent?: Agent;
  readonly httpAgentProvider?: () => Promise<Agent>;
  readonly httpsAgent?: Agent;
  readonly connectionTimeout?: number;
  readonly requestTimeout?: number;
}

/** Returns the configuration of `client`. */
export function configOf(client: DynamoDBClient): ClientConfig {
  return client.config as unknown as ClientConfig;
}

/** Reads the settings for all requests of `client`. A returned string gives the reason why they can't be read. */
export async function readSettings(client: DynamoDBClient, watchers: () => Iterable<AnswerWatcher>): Promise<TransportSettings | string> {
  const config = configOf(client);
  const handler = config.requestHandler;
  const http = await handler.configProvider;
  if (!http?.httpsAgent || !http.httpAgentProvider) return "the settings of its request handler can't be read";
  if (!isRetryStrategy(await config.retryStrategy())) return "its retry strategy is of an older kind";
  // The handler does this with its own first request. It lets client.destroy() end the connections.
  handler.config = http;
  http.httpAgent ??= await http.httpAgentProvider();
  return {
    destination: destinations(config, { "http:": http.httpAgent, "https:": http.httpsAgent }),
    retries: () => config.retryStrategy() as Promise<RetryStrategy>,
    bounds: {
      connectMs: boundOr(http.connectionTimeout),
      answerMs: boundOr(http.requestTimeout),
    },
    userAgent: await userAgentOf(config),
    clockOffset: (await config.disableClockSkewCorrection?.())
      ? undefined
      : { get: () => config.systemClockOffset ?? 0, set: (ms) => void (config.systemClockOffset = ms) },
    watchers,
  };
}

/** The bound for a client without time-outs, in ms. It is long, since a request may wait for a connection, but no longer than a lease. */
const UNBOUNDED_MS = 10_000;

/** Returns a client's time-out. The SDK takes 0 for no time-out. */
function boundOr(ms: number | undefined): number {
  return ms === undefined || ms <= 0 ? UNBOUNDED_MS : ms;
}

function isRetryStrategy(strategy: object): strategy is RetryStrategy {
  return ["acquireInitialRetryToken", "refreshRetryTokenForRetry", "recordSuccess"].every(
    (method) => typeof (strategy as Record<string, unknown>)[method] === "function",
  );
}

/** Returns the destination of requests by `config`. Resolves it again if the credentials, the region or the table have changed. */
function destinations(config: ClientConfig, agents: Readonly<Record<Endpoint["protocol"], Agent>>): TransportSettings["destination"] {
  let last:
    { readonly credentials: object; readonly region: string; readonly table: string | undefined; readonly found: Destination } | undefined;
  return async (tableNames) => {
    const region = await config.region();
    const credentials = await config.credentials();
    const [table] = tableNames;
    if (last?.credentials === credentials && last.region === region && last.table === table) return last.found;
    const { url, region: signingRegion, service } = await endpointOf(config, { region, tableNames, accountId: credentials.accountId });
    const endpoint = endpointAt(url, agents);
    const scope = { host: url.host, path: endpoint.path, region: signingRegion, service };
    const found: Destination = { endpoint, sign: signer(credentials, scope) };
    last = { credentials, region, table, found };
    return found;
  };
}

async function endpointOf(
  config: ClientConfig,
  {
    region,
    tableNames,
    accountId,
  }: { readonly region: string; readonly tableNames: readonly string[]; readonly accountId: string | undefined },
): Promise<{ readonly url: URL } & Pick<Scope, "region" | "service">> {
  const parameters = {
    UseFIPS: await config.useFipsEndpoint(),
    UseDualStack: await config.useDualstackEndpoint(),
    AccountId: accountId,
    AccountIdEndpointMode: await config.accountIdEndpointMode?.(),
    Endpoint: await customEndpointOf(config),
    Region: region,
    // A table named by its ARN may belong to another account.
    ...(tableNames.length > 1 ? { ResourceArnList: tableNames } : { ResourceArn: tableNames[0] }),
  };
  const { url, properties } = config.endpointProvider(parameters);
  const scheme = properties?.authSchemes?.[0];
  return {
    url,
    region: scheme?.signingRegion ?? config.signingRegion ?? region,
    service: scheme?.signingName ?? config.signingName ?? "dynamodb",
  };
}

/** Returns the endpoint that the client, the environment or a profile names. */
async function customEndpointOf(config: ClientConfig): Promise<string | undefined> {
  if (!config.isCustomEndpoint) return config.ignoreConfiguredEndpointUrls ? undefined : config.serviceConfiguredEndpoint?.();
  const endpoint = await config.endpoint?.();
  if (!endpoint) return undefined;
  if ("url" in endpoint) return (endpoint.url as URL).href;
  const { protocol, hostname, port, path } = endpoint as Readonly<Record<string, string | undefined>>;
  return `${protocol ?? "https:"}//${hostname ?? ""}${port ? `:${port}` : ""}${path ?? ""}`;
}

/** Returns the SDK's user agent, with this package's name. */
async function userAgentOf(config: ClientConfig): Promise<string> {
  const sections = [...(await config.defaultUserAgentProvider()), ...(config.customUserAgent ?? []), ["holdfast", VERSION] as const];
  return sections
    .map(([name, version]) => (version === undefined ? name : `${name}${name.includes("/") ? "#" : "/"}${version}`))
    .map((section) => section.replace(/[^!#$%&'*+\-./^_`|~\dA-Za-z]/g, "-"))
    .join(" ");
}
