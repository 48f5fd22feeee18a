/** One request and its response, from a gateway or from the service, without checks of any guarantee. */

/** A response. */
export interface Said {
  readonly status: number;
  /** `""` without one. */
  readonly contentType: string;
  /** The JSON body; undefined without a body. */
  readonly body: ReturnType<JSON["parse"]>;
}

/** Longer than a cold start and the longest wait; the gateway itself gives up after 30 s. */
const REQUEST_MS = 25_000;

/** Sends to the API at `base`, with the additions of `send`. @throws SyntaxError if the response is not JSON */
export async function ask(base: string, send: typeof fetch, method: string, path: string, body?: object): Promise<Said> {
  const text = body && JSON.stringify(body);
  const response = await send(base + path, {
    method,
    headers: text === undefined ? {} : { "content-type": "application/json" },
    ...(text !== undefined && { body: text }),
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  const answer = await response.text();
  return {
    status: response.status,
    contentType: response.headers.get("content-type") ?? "",
    body: answer === "" ? undefined : JSON.parse(answer),
  };
}
