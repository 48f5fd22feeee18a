/**
 * Services that are broken on purpose: a `fetch` between the conformance tests and a correct service changes the
 * request or the response. Each mutant is a mistake that a gateway, a mapping or a handler could make.
 */
import type { Target } from "./target.js";

/** The response, which a mutation may change. */
export interface Answer {
  status: number;
  readonly headers: Headers;
  /** The parsed JSON; undefined without a body. */
  body: ReturnType<JSON["parse"]>;
}

/** The request, which a mutation may change. */
export interface Question {
  readonly method: string;
  path: string;
  /** The path of the original request, before any change. */
  readonly asked: string;
  readonly headers: Headers;
  /** The body; `""` without one. */
  readonly text: string;
}

/** A mistake in the request, in the response, or in both. */
export interface Mistake {
  readonly asked?: (question: Question) => void;
  readonly answered?: (answer: Answer, question: Question) => void;
}

/** Returns `target` with the mistake in every exchange. */
export function broken(target: Target, mistake: Mistake): Target {
  const through = (send: typeof fetch): typeof fetch => carriedThrough(send, target.url, mistake);
  const { asAnother, asStranger } = target;
  return {
    url: target.url,
    fetch: through(target.fetch),
    ...(asAnother && { asAnother: through(asAnother) }),
    ...(asStranger && { asStranger: through(asStranger) }),
  };
}

/** Returns `send`, to the API at `base`, with the mistake. */
export function carriedThrough(send: typeof fetch, base: string, { asked, answered }: Mistake): typeof fetch {
  return async (input, init = {}) => {
    const { method = "GET", body } = init;
    const path = (input as string).slice(base.length);
    const question: Question = {
      method,
      path,
      asked: path,
      headers: new Headers(init.headers),
      text: typeof body === "string" ? body : "",
    };
    asked?.(question);
    const response = await send(base + question.path, { ...init, headers: Object.fromEntries(question.headers) });
    const text = await response.text();
    const answer: Answer = {
      status: response.status,
      headers: new Headers(response.headers),
      body: text === "" ? undefined : JSON.parse(text),
    };
    answered?.(answer, question);
    const isEmpty = answer.status === 204 || answer.status === 304;
    const headers = Object.fromEntries([...answer.headers].filter(([name]) => !["content-length", "transfer-encoding"].includes(name)));
    return new Response(isEmpty || answer.body === undefined ? null : JSON.stringify(answer.body), { status: answer.status, headers });
  };
}

/** Responses in which a gateway renames these headers, because it reserves their names. */
export function remapped(...names: readonly string[]): Mistake {
  return {
    answered({ headers }) {
      for (const name of names) {
        const value = headers.get(name);
        headers.delete(name);
        if (value !== null) headers.set(`x-amzn-remapped-${name}`, value);
      }
    },
  };
}

/** A gateway that drops a request's header. */
export function withheld(name: string): Mistake {
  return { asked: ({ headers }) => headers.delete(name) };
}

/** Changes every response with this status. */
export function changed(status: number, change: (answer: Answer, question: Question) => void): Mistake {
  return { answered: (answer, question) => void (answer.status === status && change(answer, question)) };
}
