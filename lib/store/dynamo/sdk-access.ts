/**
 * The access to DynamoDB as the AWS SDK finds it: region, endpoint and credentials, in every place where a client of its own would look. The
 * SDK is given: load-sdk.ts loads it, only if the environment says too little or too much, or a client of the SDK is given.
 */
import type * as Client from "@aws-sdk/client-dynamodb";
import { systemClock } from "../../core/time.js";
import { VERSION } from "../../core/version.js";
import type { Destination, TransportSettings } from "./built-in-calls.js";
import type { TableCalls } from "./calls.js";
import { TABLE_CALLS, connections, endpointAt } from "./http-sender.js";
import { type Documents, sdkCalls } from "./sdk-calls.js";
import { Finder, READS_FILES } from "./found-credentials.js";
import { signer } from "./signature.js";

/** The place of the table and the caller's identity, as far as the environment doesn't say it. */
export interface TableLocation {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly credentials?: Client.DynamoDBClientConfig["credentials"] | undefined;
}

export interface Sdk {
  /** Returns operations that send through `client`. */
  readonly calls: (client: Client.DynamoDBClient) => TableCalls;
  /** Returns what a client of it would use of this place, with what it finds itself. */
  readonly settings: (location: TableLocation) => Promise<TransportSettings>;
  /** Returns the Region that it finds. */
  readonly region: (credentials: TableLocation["credentials"]) => Promise<string>;
}

/** Returns what the SDK of these packages knows. */
export function sdkOf({ DynamoDBClient }: Pick<typeof Client, "DynamoDBClient">, documents: Documents): Sdk {
  /** The configuration of a client that sends nothing. It is handed on to the providers of credentials. */
  const configOf = ({ region, credentials }: TableLocation): Client.DynamoDBClientResolvedConfig =>
    new DynamoDBClient({ ...TABLE_CALLS, ...READS_FILES, ...(region !== undefined && { region }), ...(credentials && { credentials }) })
      .config;
  return {
    calls: (client) => sdkCalls(client, documents),
    settings: (location) => settingsOf(() => configOf(location), location.endpoint),
    region: (credentials) => configOf({ credentials }).region(),
  };
}

/** The members of the SDK's resolved configuration that are read. Early versions lack the latter ones. */
type Config = Pick<
  Client.DynamoDBClientResolvedConfig,
  | ("credentials" | "region" | "endpointProvider" | "useFipsEndpoint" | "useDualstackEndpoint")
  | ("retryStrategy" | "defaultUserAgentProvider")
> &
  Partial<Pick<Client.DynamoDBClientResolvedConfig, "serviceConfiguredEndpoint" | "accountIdEndpointMode" | "disableClockSkewCorrection">>;

/**
 * Returns the settings by what the SDK finds, with `endpoint` in place of the environment's.
 * @param find returns a configuration that remembers nothing
 */
export async function settingsOf(find: () => Config, endpoint: string | undefined): Promise<TransportSettings> {
  const configs = new Finder(find, systemClock);
  const config = configs.current;
  return {
    destination: destinations(configs, endpoint),
    retries: async () => {
      const strategy = await config.retryStrategy();
      if (!("acquireInitialRetryToken" in strategy)) throw new Error("the AWS SDK's retry strategy is of an older kind");
      return strategy;
    },
    correctsClock: !(await config.disableClockSkewCorrection?.()),
    userAgent: await userAgentOf(config),
  };
}

/** Returns the destination of requests. It is resolved again if the credentials, the region or the table have changed. */
function destinations(configs: Finder<Config>, endpoint: string | undefined): TransportSettings["destination"] {
  const agents = connections();
  let last:
    | { readonly credentials: Identity; readonly region: string; readonly table: string | undefined; readonly found: Destination }
    | undefined;
  return async (tableNames, refused) => {
    if (refused) configs.refused();
    const config = configs.current;
    const region = await config.region();
    const credentials = await config.credentials();
    const [table] = tableNames;
    if (last && isSame(last.credentials, credentials) && last.region === region && last.table === table) return last.found;
    const mode = await config.accountIdEndpointMode?.();
    const named = endpoint ?? (await config.serviceConfiguredEndpoint?.());
    const { url, properties } = config.endpointProvider({
      UseFIPS: await config.useFipsEndpoint(),
      UseDualStack: await config.useDualstackEndpoint(),
      Region: region,
      ...(credentials.accountId !== undefined && { AccountId: credentials.accountId }),
      ...(mode !== undefined && { AccountIdEndpointMode: mode }),
      ...(named !== undefined && { Endpoint: named }),
      // A table named by its ARN may belong to another account.
      ...(tableNames.length > 1 ? { ResourceArnList: [...tableNames] } : { ResourceArn: table }),
    });
    const scheme = properties?.authSchemes?.[0];
    const at = endpointAt(url, agents);
    const scope = { host: url.host, path: at.path, region: scheme?.signingRegion ?? region, service: scheme?.signingName ?? "dynamodb" };
    const found: Destination = { endpoint: at, sign: signer(credentials, scope) };
    last = { credentials, region, table, found };
    return found;
  };
}

type Identity = Awaited<ReturnType<Config["credentials"]>>;

function isSame(one: Identity, other: Identity): boolean {
  const members = ["accessKeyId", "secretAccessKey", "sessionToken", "accountId"] as const;
  return one === other || members.every((name) => one[name] === other[name]);
}

/** Returns the SDK's user agent, with this package's name. */
async function userAgentOf(config: Config): Promise<string> {
  return [...(await config.defaultUserAgentProvider()), ["holdfast", VERSION] as const]
    .map(([name, version]) => (version === undefined ? name : `${name}${name.includes("/") ? "#" : "/"}${version}`))
    .map((section) => section.replace(/[^!#$%&'*+\-./^_`|~\dA-Za-z]/g, "-"))
    .join(" ");
}
