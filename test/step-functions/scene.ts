/** State machines with a section under a lock, as the CDK renders them, on the real service, its handler and its agent. A test turns the clock. */
import { DefinitionBody, StateMachine, TaskInput } from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import type { Stack } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import type { LockServiceProps } from "../../infra/props.js";
import { type LockedSectionProps, type SectionLock, LockedSection } from "../../infra/step-functions.js";
import { createHandler } from "../../lambda/handler.js";
import { createClient } from "../../lib/client/client.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { systemRuntime } from "../../lib/client/runtime.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { createPolicy } from "../../lib/core/policy.js";
import { type Tell, LOST_PLACE, sweep } from "../../lib/service/agent.js";
import { oneClock } from "../../lib/service/clocks.js";
import { createMemoryStore } from "../support/memory-store.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { all } from "../infra/resources.js";
import { synthesizeOwn } from "../infra/synthesize.js";
import { fetchFrom } from "../support/handler-fetch.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { type Definition, type Json, StepFunctions } from "./machine.js";

/** The key of the executions whose input is {@link INPUT}. */
export const KEY = "ORDER_1";
/** The input of most executions. */
export const INPUT = { id: 1 };
/** The lease's length of most sections. */
export const LEASE_MS = 900_000;
const MINUTE_MS = 60_000;

/** The state of a section that invokes the function `work` with its input and its token. */
export function workOf(stack: Stack, { fencingToken }: SectionLock) {
  return LambdaInvoke.jsonata(stack, "work", {
    lambdaFunction: LambdaFunction.fromFunctionArn(stack, "Work", "arn:aws:lambda:eu-west-1:111122223333:function:work"),
    payload: TaskInput.fromObject({ input: "{% $states.input %}", fencingToken: `{% ${fencingToken} %}` }),
    outputs: "{% $states.result.Payload %}",
    retryOnServiceExceptions: false,
  });
}

/** Synthesizes a stack with a state machine of one section, whose work is the function `work`. */
export function synthesizeSection(
  props: LockServiceProps = {},
  more: (stack: Stack) => Partial<LockedSectionProps> = () => ({}),
): Template {
  return synthesizeOwn(
    () => ({ wake: true, ...props }),
    (service, stack) => {
      const key = "{% 'ORDER_' & $string($states.input.id) %}";
      const work = (lock: SectionLock) => workOf(stack, lock);
      const section = new LockedSection(stack, "Order", { service, key, leaseMs: LEASE_MS, work, ...more(stack) });
      new StateMachine(stack, "Machine", { definitionBody: DefinitionBody.fromChainable(section) });
    },
  );
}

/** Returns the definitions of the template's state machines, with names for what only a deployment knows. */
export function definitionsIn(template: Template): Definition[] {
  const known: Record<string, string> = { "AWS::Partition": "aws", "AWS::Region": "eu-west-1", "AWS::URLSuffix": "amazonaws.com" };
  return all(template, "AWS::StepFunctions::StateMachine").map(([, { Properties }]) => {
    const parts = (Properties["DefinitionString"] as { "Fn::Join": [string, (string | { Ref: string })[]] })["Fn::Join"][1];
    return JSON.parse(parts.map((part) => (typeof part === "string" ? part : (known[part.Ref] ?? "api"))).join("")) as Definition;
  });
}

/** Returns that of the only one. */
export function definitionIn(template: Template): Definition {
  const [definition, ...others] = definitionsIn(template);
  if (!definition || others.length > 0) throw new Error("the template has no state machine, or several");
  return definition;
}

/** A service with an agent, and executions of state machines. */
export class Scene {
  readonly clock = new VirtualClock();
  readonly requests: string[] = [];
  /** The failures that the service and the agent reported as their own. */
  readonly failures: unknown[] = [];
  /** The executions in their section, at most at once, and what each call of the function got. */
  readonly inside = { now: 0, most: 0, calls: [] as { readonly fencingToken: number }[] };
  /** The work of the section, besides being counted. */
  work: (payload: { readonly fencingToken: number; readonly input: Json }) => Promise<Json> = async () => "done";
  readonly machine: StepFunctions;
  /** Another caller of the same service, over the same API. */
  readonly rival: LockClient;
  readonly #send: typeof fetch;
  readonly #store = createMemoryStore({ policy: createPolicy(), clock: this.clock });
  readonly #sleepers = createMemorySleepers();

  constructor({ hasAgent = true, functionName = "work" } = {}) {
    const handler = createHandler({
      ...{ clock: this.clock, store: this.#store, log: () => undefined, onFailure: (error) => void this.failures.push(error) },
      ...(hasAgent && { sleepers: this.#sleepers }),
    });
    const send = fetchFrom(handler, this.clock);
    this.#send = send;
    const counted: typeof fetch = (url, init) => {
      this.requests.push(`${init?.method} ${new URL(url as string).pathname.replace(/leases\/[^/]+/, "leases/{id}")}`);
      return send(url, init);
    };
    this.machine = new StepFunctions(this.clock, counted, {
      [functionName]: async (payload) => {
        const given = payload as unknown as { fencingToken: number; input: Json };
        this.inside.calls.push(given);
        this.inside.most = Math.max(this.inside.most, ++this.inside.now);
        return this.work(given).finally(() => void this.inside.now--);
      },
    });
    this.rival = createClient(systemRuntime(httpApi({ url: "https://locks.test", fetch: send }), this.clock), {});
  }

  /** Tells a task, as the agent's request to Step Functions does. */
  readonly tell: Tell = async ({ taskToken = "" }, outcome) => {
    try {
      const lost = { error: LOST_PLACE, cause: "lost" };
      this.machine.answer(taskToken, outcome === LOST_PLACE ? lost : { output: JSON.parse(JSON.stringify(outcome)) as Json });
      return "told";
    } catch (error) {
      if (["TaskTimedOut", "InvalidToken"].includes((error as Error).name)) return "gone";
      throw error;
    }
  };

  sweep(tell: Tell = this.tell) {
    const clocks = oneClock(this.clock);
    const onFailure = (error: unknown): void => void this.failures.push(error);
    const isRunning = async (arn: string): Promise<boolean> => this.machine.statusOf(arn) === "RUNNING";
    const { clock } = this;
    return sweep({ store: this.#store, sleepers: this.#sleepers, tell, isRunning, clock, clocks, log: () => undefined, onFailure });
  }

  /** Lets minutes pass, each of which begins with the agent's sweep. */
  async pass(minutes: number): Promise<void> {
    for (let minute = 0; minute < minutes; minute++) {
      await this.clock.advance(0);
      await this.sweep();
      await this.clock.advance(MINUTE_MS);
    }
  }

  /** Ends so many other leases of the key, which were just made. */
  async endOthers(count: number): Promise<void> {
    for (let other = 0; other < count; other++) {
      const leaseId = leaseIdAt(this.clock.wallMs());
      await this.#send(`https://locks.test/v1/locks/${KEY}/leases/${leaseId}`, { method: "DELETE" });
    }
  }

  /** Resolves after a time of the clock. */
  after(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  /** Returns those who hold the key or wait for it. */
  async users(): Promise<readonly string[]> {
    const { holders, waiters } = await this.rival.inspect(KEY);
    return [...holders, ...waiters].map(({ owner }) => owner);
  }
}
