/** The agent inside a service on localhost: it wakes right after a release, each minute, and only where a target's service has an address. */
import { describe, expect, inject, it } from "vitest";
import { agentEnvironment } from "../../../infra/local/local-agent.js";
import { startLocalService } from "../../../infra/local/local-service.js";
import { closingAfterEach } from "../../adapters/app-server.js";
import { leaseIdAt } from "../../support/lease-ids.js";
import { startWakeTargets } from "../../support/wake-targets.js";

const open = closingAfterEach();

/** Starts the service, and returns a caller of one key. */
async function serve(wakesAt: Readonly<Record<string, string>>, table?: { endpoint: string; tableName: string }) {
  const service = open(await startLocalService({ ports: [0], table, wakesAt, log: () => undefined, onFailure: () => undefined }));
  const ask = (method: string, leaseId: string, body?: object, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${service.url}/v1/locks/ORDER_1/leases/${leaseId}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  return { ask, newId: () => leaseIdAt(Date.now()) };
}

describe("a service on localhost", () => {
  it.each([
    ["in memory", () => undefined],
    ["on an engine", () => ({ endpoint: inject("engineEndpoint"), tableName: `local-agent-${process.pid}` })],
  ])("wakes a sleeper right after a release: %s", async (_where, table) => {
    const targets = open(await startWakeTargets());
    const { ask, newId } = await serve(targets.env, table());
    const [holder, sleeper] = [newId(), newId()];
    expect((await ask("PUT", holder, {})).status).toBe(201);
    const headers = { prefer: "wait=60", "holdfast-task-token": targets.wait("token-1") };
    expect((await ask("PUT", sleeper, { leaseMs: 60_000 }, headers)).status).toBe(202);
    expect((await ask("DELETE", holder)).status).toBe(204);
    await expect.poll(() => targets.heard.get("token-1"), { timeout: 20_000 }).toHaveProperty("got.leaseId", sleeper);
    expect((await ask("GET", sleeper)).status).toBe(200);
  });

  it("wakes a sleeper right after it is offered a key that is free", async () => {
    const targets = open(await startWakeTargets());
    const { ask, newId } = await serve(targets.env);
    const sleeper = newId();
    const headers = { prefer: "wait=60", "holdfast-task-token": targets.wait("token-1") };
    expect((await ask("PUT", sleeper, { leaseMs: 60_000 }, headers)).status).toBe(202);
    await expect.poll(() => targets.heard.get("token-1"), { timeout: 20_000 }).toHaveProperty("got.leaseId", sleeper);
  });

  it("refuses a request to sleep if no service of a target has an address", async () => {
    const { ask, newId } = await serve({});
    expect((await ask("PUT", newId(), {}, { prefer: "wait=60", "holdfast-task-token": "token-1" })).status).toBe(400);
  });

  it("never tells AWS: a service without an address shares the other's", () => {
    const [sfn, lambda] = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
    expect(agentEnvironment({ AWS_ENDPOINT_URL_SFN: sfn })).toMatchObject({ AWS_ENDPOINT_URL_SFN: sfn, AWS_ENDPOINT_URL_LAMBDA: sfn });
    expect(agentEnvironment({ AWS_ENDPOINT_URL_LAMBDA: lambda, AWS_ENDPOINT_URL_SFN: "" })).toMatchObject({ AWS_ENDPOINT_URL_SFN: lambda });
    expect(agentEnvironment({ AWS_ENDPOINT_URL: sfn, AWS_ENDPOINT_URL_SFN: "" })).toBeUndefined();
    expect(agentEnvironment({ AWS_ACCESS_KEY_ID: "real", AWS_ENDPOINT_URL_SFN: sfn })).toMatchObject({ AWS_ACCESS_KEY_ID: "local" });
  });
});
