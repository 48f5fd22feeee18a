/** The requests that a gateway lets through to the service, and its responses to the others: no problem document, and still definite. */
import { expect, vi } from "vitest";
import { httpApi } from "../../../lib/client/wire/http.js";
import type { Sign } from "../../../lib/client/wire/http-options.js";
import type { Refusal } from "../../../lib/core/errors.js";
import { sigv4 } from "../../../lib/sigv4.js";
import { fromProblem } from "../../../lib/contract/problem.js";
import { type Caller, type Deployed, type OfDeployed, signerOf } from "../deployed.js";
import { signed } from "../signed.js";
import { type Said, ask } from "./asking.js";

/** Longer than the five minutes for which a signature is valid. */
const LONG_AGO_MS = 10 * 60_000;
/** Two Regions, at least one of which differs from the deployment's. */
const REGIONS = ["us-west-2", "eu-central-1"] as const;

/** A message about the credentials means that they are wrong; a bare refusal means that the right to call is missing. */
const REFUSED = /^(?:not-configured|forbidden)$/;

/** Refused by the gateway (401 is a token's): no problem document, and the client knows that nothing happened. */
function expectGateways({ status, contentType, body }: Said, what: string, expected = 403): void {
  expect([status, contentType.includes("problem"), typeof body?.code], `${what}: ${JSON.stringify(body)}`).toEqual([
    expected,
    false,
    "undefined",
  ]);
  expect(fromProblem(status, body), what).toMatchObject({ code: expect.stringMatching(REFUSED), definite: true, retry: "never" });
}

/** Signatures that aren't the caller's. */
export const forgeries: OfDeployed = ({ it, itWith }, { freshKey, newId, get }, deployed) => {
  const refused = async (sign: Sign | undefined): Promise<void> => {
    const { url, carry, first } = deployed();
    const status = first && "token" in first ? 401 : 403;
    const ref = { key: freshKey(), leaseId: newId() };
    const path = `/v1/locks/${ref.key}/leases/${ref.leaseId}`;
    expectGateways(await ask(deployed().url, sign ? signed(sign, carry) : carry, "PUT", path, {}), "PUT", status);
    const answer = (await httpApi({ url, ...(sign && { sign }), fetch: carry }).acquire(ref)) as Refusal;
    expect(answer).toMatchObject({ ok: false, code: expect.stringMatching(REFUSED), definite: true });
    expect((await get(`/v1/locks/${ref.key}`)).body.holders).toEqual([]);
  };

  it("that are missing are refused by the gateway: 403 (401 for a token), definite, and nothing happened", async () => {
    await refused(undefined);
  });

  it("of another secret are", async () => {
    const { first } = deployed();
    if (first && "token" in first) return refused(signerOf(deployed(), { token: withOtherSignature(first.token) }));
    const region = regionOf(deployed());
    await refused(sigv4({ region, credentials: { accessKeyId: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "not-the-secret" } }));
  });

  itWith("signatures", "for another Region are", async () => {
    const region = REGIONS.find((one) => one !== regionOf(deployed())) ?? REGIONS[0];
    await refused(signerOf({ ...deployed(), region }));
  });

  itWith("signatures", "of ten minutes ago are", async () => {
    await refused(async (request) => {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - LONG_AGO_MS });
      try {
        return await signerOf(deployed())(request);
      } finally {
        vi.useRealTimers();
      }
    });
  });

  itWith("signatures", "over another path or body than were sent are", async () => {
    await refused((request) => signerOf(deployed())({ ...request, url: `${request.url}0` }));
    await refused((request) => signerOf(deployed())({ ...request, body: '{"leaseMs":1000}' }));
  });
};

/** The token with its signature's first character changed. The last one may have bits that say nothing. */
function withOtherSignature(token: string): string {
  return token.replace(/\.(.)([^.]*)$/, (_all, first: string, rest: string) => `.${first === "A" ? "B" : "A"}${rest}`);
}

function regionOf({ region, url }: Deployed): string {
  return region ?? /\.execute-api\.([a-z0-9-]+)\./.exec(url)?.[1] ?? process.env["AWS_REGION"] ?? REGIONS[1];
}

/** The rights that IAM grants by the paths of the API. */
export const rights: OfDeployed = ({ itWith }, { freshKey, newId, get, post, hold }, deployed) => {
  const as = (credentials: Caller): typeof fetch => signed(signerOf(deployed(), credentials), deployed().carry);
  const byClient = (method: string, path: string, body?: object) =>
    ask(deployed().client!.url ?? deployed().url, as(deployed().client!.credentials), method, path, body);
  // A function URL's IAM sees no path: the service itself refuses, by a problem.
  const expectRefused = (said: Said, what: string): void => {
    if (deployed().client!.url === undefined) expectGateways(said, what);
    else expect([said.status, said.body?.code], what).toEqual([403, "forbidden"]);
  };

  itWith("client", "to a prefix with : and ~ let its keys through, as they are and percent-encoded", async () => {
    const key = deployed().client!.prefix + freshKey();
    const leaseId = newId();
    const acquired = await byClient("PUT", `/v1/locks/${key}/leases/${leaseId}`, {});
    expect([acquired.status, acquired.body.key], JSON.stringify(acquired.body)).toEqual([201, key]);
    const encoded = `/v1/locks/${encodeURIComponent(key)}/leases/${leaseId}`;
    expect((await byClient("POST", `${encoded}/renew`, {})).status).toBe(200);
    expect((await byClient("DELETE", encoded)).status).toBe(204);
    expect((await byClient("GET", "/v1/health")).status).toBe(200);
  });

  itWith("client", "to a prefix let no other key through, however its path is written", async () => {
    const { prefix } = deployed().client!;
    const other = freshKey();
    // A prefix without letters has no other case.
    const inOtherCase = prefix.replaceAll(/[a-z]/gi, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase())) + other;
    const others = [other, `%65${other.slice(1)}`, prefix.slice(0, -1) + other, inOtherCase].filter((key) => !key.startsWith(prefix));
    for (const key of others) {
      expectRefused(await byClient("PUT", `/v1/locks/${key}/leases/${newId()}`, {}), key);
    }
    for (const key of [`${prefix}%2F..%2F${other}`, `${prefix}..%2F..%2Flocks%2F${other}`, `${prefix}%252F${other}`]) {
      expect((await byClient("PUT", `/v1/locks/${key}/leases/${newId()}`, {})).status, key).toBeGreaterThanOrEqual(400);
    }
    expect((await get(`/v1/locks/${other}`)).body).toMatchObject({ fencingToken: 0, holders: [] });
  });

  itWith("client", "to a prefix let through no call whose keys are in the body", async () => {
    const key = deployed().client!.prefix + freshKey();
    const leaseId = newId();
    expectRefused(await byClient("PUT", `/v1/lock-sets/${leaseId}`, { keys: [key] }), "set");
    expectRefused(await byClient("POST", "/v1/renewals", { leases: [{ key, leaseId }] }), "renewals");
  });

  itWith("client", "of a client let through no call of an operator: break, list, reset", async () => {
    const key = deployed().client!.prefix + freshKey();
    expectRefused(await byClient("POST", `/v1/locks/${key}/break`, { reason: "e2e", fencingToken: 1 }), "break");
    expectRefused(await byClient("GET", "/v1/locks"), "list");
    expectRefused(await byClient("GET", "/v1/runs"), "runs");
    expectRefused(await byClient("POST", `/v1/runs/${key}/reset`, { reason: "e2e" }), "reset");
  });

  itWith("session", "are a role's: another session of it is the same principal", async () => {
    const held = await hold();
    expect((await ask(deployed().url, as(deployed().session!), "POST", `${held.url}/renew`, {})).status).toBe(200);
    expect((await post(`${held.url}/renew`)).status).toBe(200);
  });
};

/** More requests than the API accepts. */
export const throttles: OfDeployed = ({ itWith }, _calls, deployed) => {
  itWith("burst", "is the gateway's own 429 without a problem, which a client takes as definite", async () => {
    const { url, carry, burst = 0 } = deployed();
    const send = signed(signerOf(deployed()), carry);
    const answers = await Promise.all(Array.from({ length: burst }, () => ask(deployed().url, send, "GET", "/v1/health")));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length, `of ${burst} requests at once`).toBeGreaterThan(0);
    for (const { status, body } of refused) {
      expect([status, typeof body?.code], JSON.stringify(body)).toEqual([429, "undefined"]);
      expect(fromProblem(status, body)).toMatchObject({ code: "throttled", definite: true, retry: "later" });
    }
    const api = httpApi({ url, sign: signerOf(deployed()), fetch: carry });
    const clients = await Promise.all(Array.from({ length: burst }, () => api.health({})));
    const throttled = clients.filter((answer): answer is Refusal => !answer.ok);
    expect(throttled.length, `of ${burst} clients at once`).toBeGreaterThan(0);
    for (const refusal of throttled) expect(refusal).toMatchObject({ code: "throttled", definite: true });
  });
};
