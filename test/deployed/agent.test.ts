/** The role of the agent of sleepers: each action on the table and on executions is needed. Its failed sweeps would ring another test's alarms. */
import { expect, it, vi } from "vitest";
import { httpApi } from "../../lib/client/wire/http.js";
import { signerOf } from "../e2e/deployed.js";
import { signed } from "../e2e/signed.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { inXml, invoke, lambda, query } from "./aws.js";
import { deployedOf, outputsOf } from "./callers.js";
import { VARIANTS } from "./variants.js";

const STACK = "agent";

/**
 * The actions that a sweep needs, each with the role's policy that has it, and the way in which its sleeper's wait ends: its turn comes, or it
 * loses its place. The stream may start the agent before a sweep. What that one claimed, a sweep looks at after 30 s.
 */
const NEEDED = [
  ["sleepers", "dynamodb:Query", "turn"],
  ["sleepers", "dynamodb:DeleteItem", "turn"],
  ["table", "dynamodb:GetItem", "turn"],
  ["table", "dynamodb:UpdateItem", "turn"],
  ["targets", "states:SendTaskSuccess", "turn"],
  ["targets", "states:SendTaskFailure", "loss"],
] as const;

it("is enough for a sweep, and each of these is needed: with one taken away it fails, and with all of them it does not", async () => {
  const deployed = await deployedOf(STACK, VARIANTS[STACK]!);
  const api = httpApi({ url: deployed.url, sign: signerOf(deployed), fetch });
  const send = signed(signerOf(deployed));
  const agent = outputsOf(STACK)["agentFunction"]!;
  const sweep = () => invoke(agent, {});
  const { Role } = await lambda<{ readonly Role: string }>("GET", `/2015-03-31/functions/${agent}/configuration`);
  const RoleName = Role.replace(/^.*\//, "");

  for (const [at, [PolicyName, action, end]] of NEEDED.entries()) {
    const put = (document: object) => query("iam", "PutRolePolicy", { RoleName, PolicyName, PolicyDocument: JSON.stringify(document) });
    const xml = await query("iam", "GetRolePolicy", { RoleName, PolicyName });
    const document = JSON.parse(decodeURIComponent(inXml(xml, "PolicyDocument"))) as { Statement: { Action: string | string[] }[] };
    const Statement = document.Statement.map((one) => ({ ...one, Action: [one.Action].flat().filter((other) => other !== action) }));
    expect(Statement, action).not.toEqual(document.Statement.map((one) => ({ ...one, Action: [one.Action].flat() })));
    await put({ ...document, Statement: Statement.filter(({ Action }) => Action.length > 0) });

    // A sleeper, whose task nobody knows, behind a holder.
    const key = `AGENT_${at}`;
    const [held, asleep] = [leaseIdAt(Date.now()), leaseIdAt(Date.now() + 1)];
    expect(await api.acquire({ key, leaseId: held }), action).toMatchObject({ ok: true });
    const response = await send(`${deployed.url}/v1/locks/${key}/leases/${asleep}`, {
      method: "PUT",
      headers: { "content-type": "application/json", prefer: "wait=600" },
      body: JSON.stringify({ leaseMs: 180_000, wake: { taskToken: `token-${at}` } }),
    });
    expect(await response.json(), action).toMatchObject({ state: "asleep" });
    const other = end === "turn" ? held : asleep;
    expect(await api.release({ key, leaseId: other }), action).toMatchObject({ ok: true });
    await vi.waitFor(() => expect(sweep()).rejects.toThrow(), { timeout: 60_000, interval: 1000 });
    await put(document);
    await vi.waitFor(sweep, { timeout: 60_000, interval: 1000 });
  }
});
