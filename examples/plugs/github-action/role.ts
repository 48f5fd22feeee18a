/** Credentials of an AWS role, by the OIDC token with which GitHub says of which repository, branch and workflow a job is. */
import type { Credentials } from "../../../lib/sigv4.js";

/** Credentials are asked for anew this long before they end, in ms. */
const EARLY_MS = 300_000;

/** Returns a provider for `sigv4()`. The role trusts `token.actions.githubusercontent.com`, and the job has `permissions: id-token: write`. */
export function roleCredentials(role: string): () => Promise<Credentials> {
  let known: Promise<Ending> | undefined;
  return async () => {
    if (known && (await known).endsAtMs < Date.now() + EARLY_MS) known = undefined;
    known ??= assumed(role);
    known.catch(() => (known = undefined));
    return known;
  };
}

type Ending = Credentials & { readonly endsAtMs: number };

/** @throws Error that says which of the two refused, GitHub or AWS */
async function assumed(role: string): Promise<Ending> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: tokens, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret, AWS_REGION: region = "us-east-1" } = process.env;
  if (!tokens) throw new Error("role: the job has no OIDC token. It needs permissions: id-token: write");
  const answer = await fetch(`${tokens}&audience=sts.amazonaws.com`, { headers: { authorization: `Bearer ${secret}` } });
  if (!answer.ok) throw new Error(`role: GitHub gave no OIDC token: ${answer.status}`);
  const { value } = (await answer.json()) as { readonly value: string };

  const request = { Action: "AssumeRoleWithWebIdentity", Version: "2011-06-15", RoleSessionName: "holdfast", RoleArn: role };
  const sts = process.env["AWS_ENDPOINT_URL_STS"] ?? `https://sts.${region}.amazonaws.com`;
  const response = await fetch(sts, { method: "POST", body: new URLSearchParams({ ...request, WebIdentityToken: value }) });
  const xml = await response.text();
  const named = (name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? "";
  if (!response.ok) throw new Error(`role: ${role} was not assumed: ${named("Message") || response.status}`);
  return {
    ...{ accessKeyId: named("AccessKeyId"), secretAccessKey: named("SecretAccessKey"), sessionToken: named("SessionToken") },
    endsAtMs: Date.parse(named("Expiration")),
  };
}
