/**
 * Where the locks are: the service at a URL, or straight on a table. What a call needs is loaded when it is
 * known, so that asking for help loads no client, and a service's user no AWS SDK.
 */
import { hostname, userInfo } from "node:os";
import type { LockClient, LockClientEvent } from "../lib/index.js";
import { CliError } from "./cli-error.js";

/** What the command line says of it. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly table?: string;
  readonly namespace?: string;
  readonly region?: string;
  /** Undefined: as the URL's host suggests. */
  readonly sign?: boolean;
  readonly owner?: string;
}

const EXECUTE_API_HOST = /\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/;

const OF_THE_ENVIRONMENT = "of the environment";

/** What to do where AWS's tools would not know who asks either, or where. */
export const AWS_SETTINGS =
  "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and --region or AWS_REGION, as for any AWS tool.";

/**
 * A client. Sends nothing yet.
 * @throws CliError when it isn't said where, or said twice, or a package is missing; InvalidRequestError for a URL that is none.
 */
export async function connect(
  options: ConnectionOptions,
  env: NodeJS.ProcessEnv,
  onEvent?: (event: LockClientEvent) => void,
): Promise<LockClient> {
  const { url, table } = whereOf(options, env);
  // Node 20 is what this project supports; that the AWS SDK will leave it one day is no news for who waits for a lock.
  process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
  const common = { owner: options.owner ?? ownerHere(), ...(onEvent && { onEvent }) };
  if (table !== undefined) return onTable(table, options, common);

  const { createLockClient, InvalidRequestError } = await import("../lib/index.js");
  if (!URL.canParse(url)) throw new InvalidRequestError(`url: ${JSON.stringify(url)} is not a URL`, "url");
  const token = env["HOLDFAST_BEARER_TOKEN"] || undefined;
  if (token !== undefined && options.sign === true)
    throw new CliError("usage", "--sign: HOLDFAST_BEARER_TOKEN is set; a request has one or the other");
  const region = token === undefined ? signingRegion(new URL(url), options) : undefined;
  const sign = region === undefined ? undefined : await signer(region, url);
  return createLockClient({ url, token, ...(sign && { sign }), ...common });
}

/** What requests to `url` are signed for: a region's name, or the one `of the environment`; undefined: they are not. */
export function signingRegion({ protocol, hostname: host }: URL, { sign, region }: ConnectionOptions): string | undefined {
  const regionOfHost = protocol === "https:" ? EXECUTE_API_HOST.exec(host)?.[1] : undefined;
  const signs = sign ?? regionOfHost !== undefined;
  return signs ? (region ?? regionOfHost ?? OF_THE_ENVIRONMENT) : undefined;
}

/** Where the locks are. */
export type Where = { readonly url: string; readonly table?: undefined } | { readonly table: string; readonly url?: undefined };

/** The options go before the environment. @throws CliError when neither says, or both say both */
export function whereOf({ url, table }: ConnectionOptions, env: NodeJS.ProcessEnv): Where {
  if (url !== undefined) return { url };
  if (table !== undefined) return { table };
  const [urlSet, tableSet] = [env["HOLDFAST_URL"] || undefined, env["HOLDFAST_TABLE"] || undefined];
  if (urlSet !== undefined && tableSet !== undefined)
    throw new CliError("config", "both HOLDFAST_URL and HOLDFAST_TABLE are set", {
      next: "Say which one is meant by --url or --table, or unset one.",
    });
  if (urlSet !== undefined) return { url: urlSet };
  if (tableSet !== undefined) return { table: tableSet };
  throw new CliError("config", "it isn't said where the locks are", {
    next: "Give --url URL (or set HOLDFAST_URL), or for a table without a service --table NAME (or HOLDFAST_TABLE).",
  });
}

async function onTable(tableName: string, { namespace, region }: ConnectionOptions, common: object): Promise<LockClient> {
  const { createLockClient } = await needing(() => import("../lib/dynamodb.js"), ["@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb"]);
  // The SDK's own bounds on calls stay as they are: the region is all that is said here.
  if (region !== undefined) process.env["AWS_REGION"] = region;
  return createLockClient({ tableName, ...(namespace !== undefined && { namespace }), ...common });
}

async function signer(region: string, url: string) {
  const { sigv4 } = await needing(() => import("../lib/sigv4.js"), ["@aws-sdk/credential-provider-node", "@smithy/signature-v4"]);
  const sign = sigv4(region === OF_THE_ENVIRONMENT ? {} : { region });
  try {
    await sign({ method: "GET", url, headers: {} }); // What can't sign this can't sign what follows: there is nothing to wait for.
  } catch (error) {
    throw new CliError("config", `requests can't be signed: ${error instanceof Error ? error.message : String(error)}`, {
      next: AWS_SETTINGS,
    });
  }
  return sign;
}

/** What `load` gives. These packages are for some users only, and not installed with the others. */
async function needing<T>(load: () => Promise<T>, packages: readonly string[]): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new CliError("config", "this needs packages of AWS that are not installed", { next: `npm install [-g] ${packages.join(" ")}` });
  }
}

/** A label for people: who, and where. */
export function ownerHere(): string {
  return `${userHere()}@${hostname()}:${process.pid}`;
}

function userHere(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody"); // A user without a name, as containers have them.
  }
}
