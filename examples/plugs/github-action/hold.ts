/**
 * The process that holds the key of a job. It renews the lease, and lets the key go when the post step asks it to. If the step that started it
 * ends while it waits, such as by a cancelled job, it waits no longer.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLockClient } from "../../../lib/index.js";
import { sigv4 } from "../../../lib/sigv4.js";
import type { Told } from "./main.js";
import { roleCredentials } from "./role.js";

const { INPUT_URL: url, INPUT_KEY: key, INPUT_ROLE: role, GITHUB_REPOSITORY, GITHUB_RUN_ID } = process.env;
const waitMs = 1000 * Number(process.env["INPUT_WAIT-SECONDS"]);

const givenUp = new AbortController();
process.once("disconnect", () => givenUp.abort());

let end: (how: string) => void;
const ended = new Promise<string>((resolve) => (end = resolve));
let letGo: () => void;
const asked = new Promise<void>((resolve) => (letGo = resolve));
const server = createServer((_request, response) => {
  letGo();
  void ended.then((how) => response.end(how, () => process.exit()));
});

try {
  const credentials = role ? roleCredentials(role) : undefined;
  await credentials?.(); // A refusal ends the step now, and not after its wait.
  const owner = `${GITHUB_REPOSITORY} run ${GITHUB_RUN_ID}`;
  const locks = createLockClient({ url, owner, ...(credentials && { sign: sigv4({ credentials }) }) });
  await locks.withLock(key!, { waitMs, signal: givenUp.signal }, async (lease) => {
    await once(server.listen(0, "127.0.0.1"), "listening");
    const told: Told = { port: (server.address() as AddressInfo).port, fencingToken: lease.fencingToken };
    process.send!(told);
    await Promise.race([asked, once(lease.signal, "abort")]);
  });
  end!("released");
} catch (error) {
  const { message } = error as Error;
  end!(message);
  if (process.connected) process.send!({ error: message } satisfies Told);
}
