/**
 * Connects to the locks: a service at a URL, or directly a table. Modules are loaded on demand, so `--help` loads no client, and users of a
 * service load no AWS SDK.
 */
import { readFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import type { LockClient, LockClientEvent, Sign } from "../lib/index.js";
import { CliError } from "./cli-error.js";

/** The connection options of the command line. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly table?: string;
  /** With a table, the caller's own namespace; with a service, that of the tenant whose keys an operator means. */
  readonly namespace?: string;
  readonly region?: string;
  /** True to sign requests. Undefined: decided by the URL's host. */
  readonly sign?: boolean;
  /** A file with a bearer token, which is read again for each request. */
  readonly tokenFile?: string | undefined;
  readonly owner?: string;
  /** The length of leases that say no other. @default that of the SDK */
  readonly leaseMs?: number;
  /** False for a command that asks again anyway. @default that of the SDK */
  readonly retryReads?: boolean;
}

const EXECUTE_API_HOST = /\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/;

const OF_THE_ENVIRONMENT = "of the environment";

/** Advice for missing AWS credentials or a missing region. */
export const AWS_SETTINGS =
  "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and --region or AWS_REGION, as for any AWS tool.";

/**
 * Creates a client, which sends nothing yet.
 * @throws CliError if the location is missing or given twice, or a package is missing; InvalidRequestError for an invalid URL.
 */
export async function connect(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
  onEvent?: (event: LockClientEvent) => void,
): Promise<LockClient> {
  const { url, table } = whereOf(options, env);
  silenceNodeWarning();
  const { owner = ownerHere(), leaseMs, retryReads } = options;
  const common = { owner, leaseMs, retryReads, onEvent };
  if (table !== undefined) return onTable(table, options, common);

  const { createLockClient } = await import("../lib/index.js");
  return createLockClient({ ...(await accessTo(url, options, env)), ...common });
}

/** Returns the URLs of services, and what the requests to them carry. @throws CliError as {@link connect} */
export async function accessTo(services: string, options: ConnectionOptions, env: NodeJS.ProcessEnv) {
  const token = await bearerToken(options, env);
  const urls = services.split(",");
  const sign = token === undefined ? await signerOf(urls, options) : undefined;
  const { namespace } = options;
  return { url: urls.map((one) => (namespace === undefined ? one : ofTenant(one, namespace))), token, sign };
}

/** Returns a signer if one of these needs it; in several Regions, each request is signed for that of its host. The client itself refuses a URL that is none. */
async function signerOf(urls: readonly string[], options: ConnectionOptions): Promise<Sign | undefined> {
  const signed = urls.flatMap((url) => {
    const region = URL.canParse(url) ? signingRegion(new URL(url), options) : undefined;
    return region === undefined ? [] : [{ url, region }];
  });
  const [first, ...others] = signed;
  if (!first) return undefined;
  const isOneRegion = others.every(({ region }) => region === first.region);
  return signer(isOneRegion ? first.region : OF_THE_ENVIRONMENT, first.url);
}

/** Returns the URL at which operators find a tenant's keys. Gateways decode a `%` differently, so it is written as `~25`, and `~` as `~7E`. */
function ofTenant(url: string, namespace: string): string {
  const segment = namespace.replaceAll(/[%~]/g, (char) => (char === "%" ? "~25" : "~7E"));
  return `${url.replace(/\/+$/, "")}/namespaces/${encodeURIComponent(segment)}`;
}

type Token = string | (() => Promise<string>);

/**
 * Returns the bearer token of the environment, or a function that reads that of a file anew, because a token can end before what runs under
 * a lease does; undefined if there is none.
 * @throws CliError if both are given, or one with `--sign`, or the file has no token
 */
async function bearerToken({ sign, tokenFile }: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<Token | undefined> {
  const source = tokenSource({ tokenFile }, env);
  if (!source) return undefined;
  const { name, value } = source;
  if (sign === true) throw new CliError("usage", `--sign: ${name} is given; a request has a signature or a token`);
  if (name === TOKEN) return value;
  const read = async (): Promise<string> => {
    const token = (await readFile(value, "utf8")).trim();
    if (token === "") throw new Error(`${value} is empty`);
    return token;
  };
  await read().catch((error: unknown) => {
    throw new CliError("config", `${name}: ${(error as Error).message}`, { next: "It is the path of a file that has only the token." });
  });
  return read;
}

const TOKEN = "HOLDFAST_BEARER_TOKEN";
const TOKEN_FILE = "HOLDFAST_BEARER_TOKEN_FILE";

/** Returns the option or the variable that gives the bearer token; undefined if none does. @throws CliError if two variables do */
function tokenSource({ tokenFile }: Pick<ConnectionOptions, "tokenFile">, env: NodeJS.ProcessEnv) {
  if (tokenFile !== undefined) return { name: "--token-file", value: tokenFile };
  const [token, file] = [env[TOKEN] || undefined, env[TOKEN_FILE] || undefined];
  if (token !== undefined && file !== undefined)
    throw new CliError("config", `both ${TOKEN} and ${TOKEN_FILE} are set`, {
      next: "Unset one, or say which file is meant by --token-file.",
    });
  if (token !== undefined) return { name: TOKEN, value: token };
  return file === undefined ? undefined : { name: TOKEN_FILE, value: file };
}

/** Suppresses the AWS SDK's warning that it will drop Node 20, which this project supports. */
export function silenceNodeWarning(): void {
  process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
}

/** Returns the region for which requests to `url` are signed, or `of the environment`; undefined if they are not signed. */
export function signingRegion({ protocol, hostname: host }: URL, { sign, region }: ConnectionOptions): string | undefined {
  const regionOfHost = protocol === "https:" ? EXECUTE_API_HOST.exec(host)?.[1] : undefined;
  const signs = sign ?? regionOfHost !== undefined;
  return signs ? (region ?? regionOfHost ?? OF_THE_ENVIRONMENT) : undefined;
}

/** The location of the locks; for a service, whether requests have a bearer token, and the tenant that an operator means. */
export type Where =
  | { readonly url: string; readonly hasToken?: boolean; readonly namespace?: string | undefined; readonly table?: undefined }
  | { readonly table: string; readonly url?: undefined; readonly hasToken?: undefined; readonly namespace?: undefined };

/** Returns the location. @throws CliError if none is given, or the environment has both */
export function whereOf(options: ConnectionOptions, env: NodeJS.ProcessEnv): Where {
  const where = whereIfGiven(options, env);
  if (where) return where;
  throw new CliError("config", "no lock service given", {
    next:
      `Pass --url or set ${URL_SET} (for a local \`holdfast dev\`: http://127.0.0.1:4653), ` +
      `or pass --table or set ${TABLE_SET} to use DynamoDB directly.`,
  });
}

const URL_SET = "HOLDFAST_URL";
const TABLE_SET = "HOLDFAST_TABLE";

/** Returns the location, or undefined if none is given; options take precedence over the environment. @throws CliError if the environment has both */
export function whereIfGiven({ url, table, tokenFile, namespace }: ConnectionOptions, env: NodeJS.ProcessEnv): Where | undefined {
  const at = (service: string): Where => ({ url: service, hasToken: tokenSource({ tokenFile }, env) !== undefined, namespace });
  if (url !== undefined) return at(url);
  if (table !== undefined) return { table };
  const [urlSet, tableSet] = [env[URL_SET] || undefined, env[TABLE_SET] || undefined];
  if (urlSet !== undefined && tableSet !== undefined)
    throw new CliError("config", `both ${URL_SET} and ${TABLE_SET} are set`, {
      next: "Say which one is meant by --url or --table, or unset one.",
    });
  if (urlSet !== undefined) return at(urlSet);
  return tableSet === undefined ? undefined : { table: tableSet };
}

async function onTable(tableName: string, { namespace, region }: ConnectionOptions, common: object): Promise<LockClient> {
  const { createLockClient } = await needing(() => import("../lib/dynamodb.js"), TABLE_PACKAGES);
  // Sets only the region; the SDK's default limits on calls stay.
  if (region !== undefined) process.env["AWS_REGION"] = region;
  return createLockClient({ tableName, namespace, ...common });
}

/**
 * Returns a signer of requests to `url` with the caller's credentials.
 * @throws CliError if a package or the credentials are missing
 */
export async function signer(region: string, url: string, service?: string): Promise<Sign> {
  const { sigv4 } = await import("../lib/sigv4.js");
  const sign = sigv4({ region: region === OF_THE_ENVIRONMENT ? undefined : region, service });
  try {
    await sign({ method: "GET", url, headers: {} }); // If this can't be signed, later requests can't either, so fail now.
  } catch (error) {
    throw new CliError("config", `requests can't be signed: ${error instanceof Error ? error.message : String(error)}`, {
      next: AWS_SETTINGS,
    });
  }
  return sign;
}

/** The packages for using a table directly. */
export const TABLE_PACKAGES: readonly string[] = ["@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb"];

/** Returns the result of `load`. Only some users need these packages, so they are not installed by default. @throws CliError without one */
export async function needing<T>(load: () => Promise<T>, packages: readonly string[], what = "this"): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new CliError("config", `${what} needs packages of AWS that are not installed`, {
      next: `npm install [-g] ${packages.join(" ")}`,
    });
  }
}

/** Returns a label for people: user, host and process id. */
export function ownerHere(): string {
  return `${userHere()}@${hostname()}:${process.pid}`;
}

function userHere(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody"); // A user without a name, as in containers.
  }
}
