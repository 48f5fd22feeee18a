/** One request and what was said to it, by a gateway or by the service: nothing is promised of it yet. */

/** An answer. */
export interface Said {
  readonly status: number;
  /** `""` without one. */
  readonly contentType: string;
  /** The JSON of it; undefined without a body. */
  readonly body: ReturnType<JSON["parse"]>;
}

/** A cold start and the longest wait take less; the gateway itself gives up after 30 s. */
const REQUEST_MS = 25_000;

/** Sends to the API at `base`, with whatever `send` adds. @throws SyntaxError when the answer is not JSON */
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
