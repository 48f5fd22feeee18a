/** The callers of a deployed stack: roles that are assumed, or tokens of its user pool. */
import { inject } from "vitest";
import type { Caller, Deployed } from "../e2e/deployed.js";
import { assume, call } from "./aws.js";
import { REGION } from "./emulator.js";
import { CLIENT_PREFIX, PREFIXES, type Variant } from "./variants.js";

export function outputsOf(stack: string): Readonly<Record<string, string>> {
  const outputs = inject("stacks")[stack];
  if (!outputs) throw new Error(`There is no stack ${stack}`);
  return outputs;
}

/** A way to a service: its API, or its function URLs. */
export type Door = "api" | "function-url";

/** The function URL of a stack for the keys of a prefix, or for all keys. */
export function urlOf(stack: string, prefix?: (typeof PREFIXES)[number]): string {
  return outputsOf(stack)[prefix === undefined ? "AllKeysUrl" : `PrefixUrl${PREFIXES.indexOf(prefix)}`] ?? "";
}

/** The callers of a stack, by one of its doors. */
export async function deployedBy(door: Door, stack: string, variant: Variant): Promise<Deployed> {
  const deployed = await deployedOf(stack, variant);
  if (door === "api") return deployed;
  const client = { ...deployed.client!, url: urlOf(stack, CLIENT_PREFIX) };
  return { ...deployed, url: urlOf(stack), servesOperators: false, client };
}

/** The deployed API of a stack, with all its callers. */
export async function deployedOf(stack: string, { callers }: Variant): Promise<Deployed> {
  const url = outputsOf(stack)["Url"] ?? "";
  const common = { url, carry: fetch, region: REGION };
  if (callers === "tokens") {
    const [first, second] = await Promise.all(["Operator", "Deputy"].map((client) => tokenOf(stack, client)));
    return { ...common, first: first!, second: second! };
  }
  const as = (role: string, session?: string) => assume(`${stack}-${role}`, session);
  const [first, session, second, client] = await Promise.all([as("first"), as("first", "two"), as("second"), as("client")]);
  return {
    ...{ ...common, first, session, client: { credentials: client, prefix: CLIENT_PREFIX } },
    // With tenants by role, another role is a stranger.
    ...(stack === "tenant-role" ? { stranger: second } : { second }),
  };
}

/** A token that the user pool of a stack gives one of its clients. */
export async function tokenOf(stack: string, clientName: string): Promise<Caller & { readonly token: string }> {
  const { PoolId: UserPoolId, [`${clientName}Id`]: ClientId = "" } = outputsOf(stack);
  const { UserPoolClient } = await call<{ readonly UserPoolClient: { readonly ClientSecret: string } }>(
    "cognito",
    "DescribeUserPoolClient",
    { UserPoolId, ClientId },
  );
  const secret = Buffer.from(`${ClientId}:${UserPoolClient.ClientSecret}`).toString("base64");
  const response = await fetch(`${inject("endpoint")}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${secret}`, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  const { access_token: token } = (await response.json()) as { readonly access_token: string };
  return { token };
}
