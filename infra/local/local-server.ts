/** An HTTP server on this machine, before everything that it serves. Whatever a socket sends, the process goes on. */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

/** Answers a request. If it throws or rejects, the caller gets a 500. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

/** What gets the errors. */
export interface LocalServerOptions {
  /** Called with errors of `serve`. @default they are dropped */
  readonly onError?: ((error: unknown) => void) | undefined;
}

interface Refused {
  readonly status: number;
  readonly message: string;
}

/** Creates the server. It doesn't listen yet. */
export function createLocalServer(serve: Serve, { onError = () => undefined }: LocalServerOptions = {}): Server {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const refused = refusalOf(request);
      if (refused) answerBriefly(response, refused);
      else await serve(request, response);
    } catch (error) {
      if (request.errored) return; // The caller disconnected before its request was complete.
      onError(error);
      if (response.headersSent) response.destroy();
      else answerBriefly(response, { status: 500, message: "Internal Server Error" });
    }
  };
  return createServer((request, response) => void answer(request, response));
}

/** Returns the path as sent, still percent-encoded, and the query string without its question mark. */
export function splitUrl({ url = "/" }: IncomingMessage): { readonly encodedPath: string; readonly rawQueryString: string } {
  const mark = url.indexOf("?");
  return mark < 0 ? { encodedPath: url, rawQueryString: "" } : { encodedPath: url.slice(0, mark), rawQueryString: url.slice(mark + 1) };
}

/** Returns the reason for which a request is refused. A URL parser would take what follows `//` for a host. */
function refusalOf({ url = "" }: IncomingMessage): Refused | undefined {
  return /^\/(?!\/)/.test(url) ? undefined : { status: 400, message: "Bad Request" };
}

/** Answers as API Gateway does where it answers itself. */
function answerBriefly(response: ServerResponse, { status, message }: Refused): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name); // Headers of an answer that could not be written.
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ message }));
}
