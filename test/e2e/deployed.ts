/** A deployment of the stack, from environment variables: its URL and its callers. README.md documents the variables. */
import { type Credentials, type SigV4Options, sigv4 } from "../../lib/sigv4.js";
import type { Calls } from "./calls.js";
import type { Sign } from "../../lib/client/wire/http-options.js";
import { signed } from "./signed.js";
import type { DeployedNeed, Suite } from "./suite.js";
import type { Target } from "./target.js";

/** A caller signs with credentials, or sends a JSON Web Token. */
export type Caller = Credentials | { readonly token: string };

/** A deployed API, or a stand-in. */
export interface Deployed {
  /** The URL without a slash at the end. */
  readonly url: string;
  /** Sends signed requests. A test may intercept them. */
  readonly carry: typeof fetch;
  /** The caller whose leases most tests take. @default one with credentials as the AWS SDK finds them */
  readonly first?: Caller;
  /** @default the environment's, else the one in the URL */
  readonly region?: string;
  /** Another principal of the same account; a principal of another account. */
  readonly second?: Caller;
  readonly stranger?: Caller;
  /** Another session of the first caller's role. */
  readonly session?: Credentials;
  /** A role that may acquire keys with this prefix only. */
  readonly client?: {
    readonly credentials: Credentials;
    readonly prefix: string;
    /** Its own URL, where each grant has one. @default the deployment's */
    readonly url?: string;
  };
  /** False if the URL is a function URL, which serves no operators. @default true */
  readonly servesOperators?: boolean;
  /** A number of concurrent requests that exceeds the API's limit. */
  readonly burst?: number;
  /** The largest number of concurrent requests in a test of a race. */
  readonly atOnce?: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_CLIENT_PREFIX = "e2e:client~";

/** The deployment that `env` names; undefined without `HOLDFAST_URL`. @throws Error naming a variable that is missing or wrong */
export function deployedFrom(env: Environment): Deployed | undefined {
  const url = env["HOLDFAST_URL"];
  if (!url) return undefined;
  const first = tokenFrom(env, "FIRST");
  const second = tokenFrom(env, "SECOND") ?? credentialsFrom(env, "SECOND");
  const stranger = tokenFrom(env, "STRANGER") ?? credentialsFrom(env, "STRANGER");
  const session = credentialsFrom(env, "SESSION");
  const client = credentialsFrom(env, "CLIENT");
  const clientUrl = env["HOLDFAST_E2E_CLIENT_URL"];
  const burst = numberFrom(env, "HOLDFAST_E2E_BURST");
  const atOnce = numberFrom(env, "HOLDFAST_E2E_AT_ONCE");
  return {
    url: url.replace(/\/+$/, ""),
    carry: fetch,
    ...(first && { first }),
    ...(second && { second }),
    ...(stranger && { stranger }),
    ...(session && { session }),
    ...(client && {
      client: {
        credentials: client,
        prefix: env["HOLDFAST_E2E_CLIENT_PREFIX"] || DEFAULT_CLIENT_PREFIX,
        ...(clientUrl && { url: clientUrl.replace(/\/+$/, "") }),
      },
    }),
    ...(env["HOLDFAST_E2E_OPERATORS"] === "no" && { servesOperators: false }),
    ...(burst !== undefined && { burst }),
    ...(atOnce !== undefined && { atOnce }),
  };
}

/** Reads `HOLDFAST_E2E_<WHO>_TOKEN`. */
function tokenFrom(env: Environment, who: string): Caller | undefined {
  const token = env[`HOLDFAST_E2E_${who}_TOKEN`];
  return token ? { token } : undefined;
}

/** Reads `HOLDFAST_E2E_<WHO>_ACCESS_KEY_ID`, `…_SECRET_ACCESS_KEY` and, for temporary credentials, `…_SESSION_TOKEN`. */
function credentialsFrom(env: Environment, who: string): Credentials | undefined {
  const name = (what: string): string => `HOLDFAST_E2E_${who}_${what}`;
  const accessKeyId = env[name("ACCESS_KEY_ID")];
  const secretAccessKey = env[name("SECRET_ACCESS_KEY")];
  const sessionToken = env[name("SESSION_TOKEN")];
  if (!accessKeyId) return undefined;
  if (!secretAccessKey) throw new Error(`${name("SECRET_ACCESS_KEY")} is not set, and ${name("ACCESS_KEY_ID")} is`);
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

function numberFrom(env: Environment, name: string): number | undefined {
  const text = env[name];
  if (!text) return undefined;
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new Error(`${name}: ${JSON.stringify(text)} is not a whole number from 1 to 99999`);
  return Number(text);
}

/** Signs as `caller`, or adds its token. @default the first caller */
export function signerOf({ region, first }: Deployed, caller: Caller | undefined = first): Sign {
  if (caller && "token" in caller) return () => Promise.resolve({ authorization: `Bearer ${caller.token}` });
  const credentials = caller;
  return sigv4({ ...(region !== undefined && { region }), ...(credentials && { credentials }) } satisfies SigV4Options);
}

/** The deployment as a target. */
export function targetOf(deployed: Deployed): Target {
  const { url, carry, second, stranger, servesOperators = true, atOnce } = deployed;
  return {
    url,
    servesOperators,
    fetch: signed(signerOf(deployed), carry),
    ...(second && { asAnother: signed(signerOf(deployed, second), carry) }),
    ...(stranger && { asStranger: signed(signerOf(deployed, stranger), carry) }),
    ...(atOnce !== undefined && { limits: { atOnce } }),
  };
}

/** Declares tests of a deployment. `deployed` may only become available when the tests run. */
export type OfDeployed = (suite: Suite, calls: Calls, deployed: () => Deployed) => void;

/** The reason for skipping a test of a deployment; undefined if it has everything that it needs. */
export function lackOf(deployed: Deployed, need: DeployedNeed): string | undefined {
  if (need === "signatures") return deployed.first && "token" in deployed.first ? "its callers send tokens, and don't sign" : undefined;
  const variable = {
    client: "HOLDFAST_E2E_CLIENT_ACCESS_KEY_ID",
    session: "HOLDFAST_E2E_SESSION_ACCESS_KEY_ID",
    burst: "HOLDFAST_E2E_BURST",
  };
  return deployed[need] === undefined ? `needs ${variable[need]}` : undefined;
}
