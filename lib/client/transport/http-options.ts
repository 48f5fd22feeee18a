/** The options of requests over HTTP, and their checks. */
import { checkType } from "../client-options.js";
import { InvalidRequestError } from "../errors.js";
import type { HttpOptions } from "./http.js";

/** The options of a client, each of which may be left out or undefined. */
export type HttpSettings = { readonly [Name in keyof HttpOptions]?: HttpOptions[Name] | undefined };

/** The names of the options. */
export const HTTP_OPTIONS = ["url", "sign", "token", "headers", "fetch"];

/** @throws InvalidRequestError naming the option that has a wrong type, or `url` unless it is a URL of http or https without a password. */
export function checkHttp(options: HttpSettings, url: string): void {
  checkType("sign", options.sign, "function");
  checkType("token", options.token, "string", "function");
  checkType("headers", options.headers, "object");
  checkType("fetch", options.fetch, "function");
  const { protocol, username, password } = URL.canParse(url) ? new URL(url) : { protocol: "", username: "", password: "" };
  const isHttp = /^https?:$/.test(protocol);
  // The message doesn't show what may be a password.
  if (!isHttp && !url.includes("@"))
    throw new InvalidRequestError(`url: ${JSON.stringify(url)} is no http URL: it must begin with http:// or https://`, "url");
  if (!isHttp || username !== "" || password !== "") throw new InvalidRequestError("url: takes no user or password", "url");
}
