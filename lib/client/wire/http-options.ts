/** The options of requests over HTTP, and their checks. */
import { InvalidRequestError } from "./errors.js";
import { type Checks, must, ofType } from "./checks.js";
import { optionOrVariable } from "./environment.js";

/** Signs a request: takes the plain request and returns the headers to send. */
export interface Sign {
  (request: {
    readonly method: string;
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
  }): Promise<Readonly<Record<string, string>>>;
  /**
   * True if it signs as the same caller from every call chain, as those of `holdfast/sigv4` do. Heartbeats of several leases then share a
   * request; otherwise each is signed by itself, in the async context of its acquire. @default false
   */
  readonly oneCaller?: boolean;
  /**
   * Takes a gateway's refusal (403) of a request with these signed headers. If it resolves to true, the request is signed and sent once
   * more. @default none: such a refusal is final
   */
  readonly refused?: (refusal: {
    readonly text: string;
    readonly date: string | null;
    readonly headers: Readonly<Record<string, string>>;
  }) => Promise<boolean>;
}

/** The service's URL and the credentials and headers for its requests. */
export interface HttpOptions {
  /** The API's URL, with its stage if it has one. */
  readonly url: string;
  /** Signs each request; see `holdfast/sigv4`. */
  readonly sign?: Sign | undefined;
  /**
   * A bearer token, or a function that returns a current one. A heartbeat calls it in the async context of its lease's acquire, and shares a
   * request with those of the same token only.
   */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** Headers for every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sends the requests, for example through a proxy that is set for `fetch` alone.
   * @default `node:http` and `node:https` with their global agents; the global `fetch` outside Node, and where it was replaced
   */
  readonly fetch?: typeof fetch | undefined;
}

export const HTTP_OPTIONS: Checks<HttpOptions> = {
  url: must((url) => typeof url === "string" || Array.isArray(url), "it must be a URL or a list of URLs"),
  sign: ofType("function"),
  token: ofType("string", "function"),
  headers: ofType("object"),
  fetch: ofType("function"),
};

/** Returns the URLs of the option, or of the variable. @throws InvalidRequestError if there is none, or one is invalid */
export function urlsOf(given: string | readonly string[] | undefined): readonly string[] {
  const urls = Array.isArray(given) ? (given as readonly string[]) : optionOrVariable("url", given as string, "HOLDFAST_URL").split(",");
  for (const url of urls.length > 0 ? urls : [""]) checkUrl("url", url);
  return urls;
}

/** @throws InvalidRequestError naming the option `name` unless the given one is a URL of http or https, to which a path can be added. */
export function checkUrl(name: string, given: unknown): void {
  const url = String(given);
  const { protocol, username, password } = URL.canParse(url) ? new URL(url) : { protocol: "", username: "", password: "" };
  if (/[\s?#]/.test(url)) throw new InvalidRequestError(`${name}: must have no blank, no query and no fragment, also at its end`, name);
  const isHttp = /^https?:$/.test(protocol);
  // The message doesn't show what may be a password.
  if (!isHttp && !url.includes("@"))
    throw new InvalidRequestError(`${name}: ${JSON.stringify(url)} is no http URL: it must begin with http:// or https://`, name);
  if (!isHttp || username !== "" || password !== "") throw new InvalidRequestError(`${name}: takes no user or password`, name);
}
