/** A section of a state machine as the CDK renders it: its states, the permissions that they bring, and the options that it refuses. */
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { format } from "prettier";
import { describe, expect, it } from "vitest";
import type { LockServiceProps } from "../../infra/props.js";
import { type SectionLock, LockedSection } from "../../infra/step-functions.js";
import { grantedStatements, pathsOf } from "../infra/resources.js";
import { synthesizeOwn } from "../infra/synthesize.js";
import { definitionIn, definitionsIn, synthesizeSection, workOf } from "./scene.js";

const template = synthesizeSection();

/** The ends of the API's ARNs that the state machine may call. */
const callable = (made: typeof template) =>
  grantedStatements(made)
    .filter(({ Action }) => Action === "execute-api:Invoke")
    .flatMap(pathsOf)
    .toSorted();

describe("a section of a state machine", () => {
  it("has the states of the snapshot", async () => {
    const rendered = await format(JSON.stringify(definitionIn(template)), { parser: "json", printWidth: 140 });
    await expect(rendered).toMatchFileSnapshot("rendering.json");
  });

  it("has a variable of its own beside others whose ids differ in signs alone, which is a valid name", () => {
    const ids = ["Order-1", "Order 1", "Order_1", "Ordér1", `Order-${"x".repeat(60)}`];
    const template = synthesizeOwn(
      () => ({ wake: true }),
      (service, stack) => {
        for (const id of ids) {
          const work = (lock: SectionLock) => Pass.jsonata(stack, `${id}: work`, { outputs: `{% ${lock.fencingToken} %}` });
          const section = new LockedSection(stack, id, { service, key: "k", leaseMs: 60_000, work });
          new StateMachine(stack, `Machine ${ids.indexOf(id)}`, { definitionBody: DefinitionBody.fromChainable(section) });
        }
      },
    );
    const names = definitionsIn(template).flatMap(({ States }) =>
      Object.entries(States).flatMap(([name, state]) => (name.endsWith(": lease id") ? Object.keys(state.Assign ?? {}) : [])),
    );
    expect(new Set(names).size).toBe(ids.length);
    for (const name of names) expect(name).toMatch(/^lock_\w{1,75}$/);
    expect(names).toContain("lock_Order_1");
  });

  it("sends what the service shall store with the lease", () => {
    const options = { owner: "{% $states.input.who %}", limit: 3, permits: 2, priority: 5, leaseMs: 60_000 };
    const { States } = definitionIn(synthesizeSection({}, () => options));
    const bodyOf = (state: string) => States[`Order: ${state}`]?.Arguments?.["RequestBody"];
    expect(bodyOf("acquire")).toEqual(options);
    expect(bodyOf("sleep"), "a lease that a second telling still finds").toEqual({ ...options, leaseMs: 180_000 });
  });

  it("may call the paths that its states use, and nothing else", () => {
    expect(callable(template)).toEqual(["DELETE", "GET", "PUT"].map((method) => `/$default/${method}/v1/locks/*/leases/*`));
    const renewing = synthesizeSection({}, (stack) => ({ key: "jobs:1", work: (lock) => lock.renew("renew").next(workOf(stack, lock)) }));
    const ways = ["jobs%3A1", "jobs:1"];
    expect(callable(renewing), "of a key that is known, plain or encoded").toEqual([
      ...["DELETE", "GET"].flatMap((method) => ways.map((key) => `/$default/${method}/v1/locks/${key}/leases/*`)),
      ...ways.map((key) => `/$default/POST/v1/locks/${key}/leases/*/renew`),
      ...ways.map((key) => `/$default/PUT/v1/locks/${key}/leases/*`),
    ]);
  });

  it("can be one of several, also one inside another", () => {
    const made = synthesizeOwn(
      () => ({ wake: true }),
      (service, stack) => {
        const options = { service, leaseMs: 60_000 };
        const inner = new LockedSection(stack, "Inner", { ...options, key: "b", work: (lock) => workOf(stack, lock) });
        const outer = new LockedSection(stack, "Outer", { ...options, key: "a", work: () => inner });
        new StateMachine(stack, "Machine", { definitionBody: DefinitionBody.fromChainable(outer) });
      },
    );
    const States = definitionIn(made).States["Outer: section"]?.Branches?.[0]?.States ?? {};
    expect(Object.keys(States)).toContain("Inner: acquire");
    expect(States["Inner: lease id"]?.Assign).not.toHaveProperty("lock_Outer");
  });

  const jwt = { issuer: "https://id.example.com/", audience: ["locks"] };
  it.each<[what: string, options: object, props: LockServiceProps, rule: string]>([
    [
      "a service without an agent",
      {},
      { wake: false },
      "service: it has no agent that wakes who waits; give it wake: true, or give waitMs: 0",
    ],
    ["a service that takes tokens", {}, { jwt }, "service: it takes tokens (jwt), and Step Functions signs with IAM"],
    ["a key that is none", { key: "ORDER 1" }, {}, 'key: "ORDER 1" given; a key is 1 to 200 characters'],
    ["no leaseMs", { leaseMs: undefined }, {}, "leaseMs: undefined given; it must outlast the section"],
    ["a tie that is neither true nor false", { tied: "yes" }, {}, 'tied: "yes" given; it must be true or false'],
    ["a tie with a lease that two sweeps may miss", { tied: true, leaseMs: 179_999 }, {}, "leaseMs: 179999 given"],
    [
      "a tie without an agent",
      { tied: true, waitMs: 0 },
      { wake: false },
      "service: it has no agent that renews a tied lease; give it wake",
    ],
    ["a wait beyond a year", { waitMs: 1e12 }, {}, "waitMs: 1000000000000 given"],
    ["more permits than there are", { limit: 2, permits: 3 }, {}, "permits: "],
    ["states in place of a function", { work: {} }, {}, "LockedSection: work is the function that makes the states"],
    ["an option that there isn't", { wait: 1 }, {}, "wait: is not an option of LockedSection; these are: service, key, leaseMs,"],
    [
      "a renewal of no time",
      { work: (lock: { renew: (id: string, options: object) => unknown }) => lock.renew("r", { leaseMs: 0 }) },
      {},
      "leaseMs: 0 given",
    ],
  ])("is refused %s", (_what, options, props, rule) => {
    expect(() => synthesizeSection(props, () => options)).toThrow(rule);
  });
});
