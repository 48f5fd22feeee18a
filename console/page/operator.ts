/**
 * An operator's calls to the API that serves the page, with a bearer token. The token stays in the memory of this page: it is never stored,
 * never in an address, and sent to nobody but the page's own origin.
 */
import type { Operator } from "../handlers.js";
import { ApiError, send } from "./api.js";

type FoundRun = Awaited<ReturnType<Operator["runs"]["get"]>>;

/** The codes of the gateway's own refusals, which have no problem document. */
const GATEWAY_CODES: Readonly<Record<number, string>> = { 401: "not-configured", 403: "forbidden", 404: "not-found", 429: "throttled" };

/**
 * Returns the calls. Each throws ApiError for a refusal or failure. `onUnaccepted` is called when the API answers 401: the token is over, or of
 * another issuer or audience.
 */
export function operatorWith(token: string, onUnaccepted: () => void): Operator {
  const call = async <T>(method: "GET" | "POST", path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const { response, value } = await send(`/v1/${path}`, init, "The API does not answer.");
    if (response.ok) return value as T;
    if (response.status === 401) onUnaccepted();
    throw failureOf(response.status, value);
  };
  return {
    health: () => call("GET", "health"),
    list: (query = {}) => call("GET", `locks${queryText(query)}`),
    inspect: (key) => call("GET", `locks/${encodeURIComponent(key)}`),
    forceRelease: (key, body) => call("POST", `locks/${encodeURIComponent(key)}/break`, body),
    limits: {
      list: (query = {}) => call("GET", `limits${queryText(query)}`),
      reset: async (name, body) => void (await call("POST", `limits/${encodeURIComponent(name)}/reset`, body)),
    },
    runs: {
      get: (key) =>
        call<FoundRun>("GET", `runs/${encodeURIComponent(key)}`).catch((error: unknown) => {
          if (error instanceof ApiError && error.code === "not-found") return null;
          throw error;
        }),
      list: (query = {}) => call("GET", `runs${queryText(query)}`),
      reset: async (key, body) => void (await call("POST", `runs/${encodeURIComponent(key)}/reset`, body)),
    },
  };
}

function queryText(query: Readonly<Record<string, string | number | undefined>>): string {
  const parameters = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return `?${new URLSearchParams(parameters).toString()}`;
}

/** Returns the service's refusal in its own words, or the gateway's. */
function failureOf(status: number, value: unknown): ApiError {
  const { code, detail } = (value ?? {}) as { readonly code?: unknown; readonly detail?: unknown };
  if (typeof code === "string" && typeof detail === "string") return new ApiError({ code, message: detail, status });
  return new ApiError({ code: GATEWAY_CODES[status] ?? "unavailable", message: `The gateway answered ${status}.`, status });
}
