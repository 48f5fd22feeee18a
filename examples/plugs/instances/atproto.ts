/**
 * An instance that refreshes a user's tokens when it reads a line, and prints the new refresh token. The session and the tokens are those of
 * the server at `TOKENS_URL`. With the argument `bare` it has atproto's own lock, which is of one process.
 */
import { once } from "node:events";
import { OAuthResponseError, type Session, SessionGetter, requestLocalLock } from "@atproto/oauth-client";
import { createLockClient } from "../../../lib/index.js";
import { requestLock } from "../atproto.js";

type Parts = ConstructorParameters<typeof SessionGetter>;
const { TOKENS_URL } = process.env as { readonly TOKENS_URL: string };

const store: Parts[0] = {
  async get() {
    const tokenSet: unknown = await (await fetch(TOKENS_URL)).json();
    return { dpopKey: {}, authMethod: { method: "none" }, tokenSet } as unknown as Session;
  },
  set: async (_sub, { tokenSet }) => void (await fetch(TOKENS_URL, { method: "PUT", body: JSON.stringify(tokenSet) })),
  del: () => undefined,
};
/** The real one finds the user's server and signs; what happens around the refresh is all atproto's. */
const servers = {
  fromIssuer: async () => ({
    authMethod: { method: "none" },
    async refresh({ refresh_token }: { readonly refresh_token: string }) {
      const response = await fetch(`${TOKENS_URL}/refresh`, { method: "POST", body: refresh_token });
      const payload = (await response.json()) as never;
      if (!response.ok) throw new OAuthResponseError(response, payload);
      return payload;
    },
  }),
} as unknown as Parts[1];
const usingLock = process.argv[2] === "bare" ? requestLocalLock : requestLock(createLockClient());
const runtime = { usingLock, hasImplementationLock: usingLock !== requestLocalLock } as unknown as Parts[2];

console.log("ready");
await once(process.stdin, "data");
const session = await new SessionGetter(store, servers, runtime).getSession("did:plc:ann");
console.log("has", session.tokenSet.refresh_token);
process.exit();
