/**
 * Step Functions, as far as a section under a lock uses it, on a clock that a test turns: states with JSONata, calls of an API Gateway and of
 * functions, retries, catches, and tasks that wait for their token. It is strict where AWS is: a token takes one answer, an expression
 * without a value is an error, headers are lists, and a variable of an outer scope isn't assigned in an inner one.
 */
import { randomUUID } from "node:crypto";
import jsonata from "jsonata";
import type { Clock } from "../../lib/core/time.js";

/** Any value of JSON. */
export type Json = string | number | boolean | null | Json[] | { [member: string]: Json };
type Members = Record<string, Json>;

/** A state, as the Amazon States Language writes it. */
export interface StateJson {
  readonly Type: "Pass" | "Task" | "Wait" | "Parallel" | "Choice" | "Succeed" | "Fail";
  readonly QueryLanguage?: string;
  readonly Next?: string;
  readonly End?: true;
  readonly Assign?: Members;
  readonly Output?: Json;
  readonly Retry?: readonly Retrier[];
  readonly Catch?: readonly Catcher[];
  readonly Resource?: string;
  readonly Arguments?: Members;
  readonly TimeoutSeconds?: number;
  readonly Seconds?: number;
  readonly Branches?: readonly Definition[];
  readonly Error?: string;
  readonly Cause?: string;
}

/** A state machine, or a branch of one. */
export interface Definition {
  readonly StartAt: string;
  readonly States: Readonly<Record<string, StateJson>>;
}

interface Retrier {
  readonly ErrorEquals: readonly string[];
  readonly IntervalSeconds?: number;
  readonly MaxAttempts: number;
  readonly BackoffRate?: number;
}
interface Catcher extends Pick<StateJson, "Assign" | "Output"> {
  readonly ErrorEquals: readonly string[];
  readonly Next: string;
}

/** A failure of a state. */
class StateError extends Error {
  constructor(
    override readonly name: string,
    override readonly cause?: string,
  ) {
    super(`${name}: ${cause}`);
  }
}

/** The news of a task, by its token. */
export type TaskNews = { readonly output: Json } | { readonly error: string; readonly cause: string };
/** A request of an execution, before it arrives or after it was carried out. */
export interface RequestPoint {
  readonly name: string;
  readonly at: "before" | "after";
  /** Method and path. */
  readonly what: string;
}

export interface Execution {
  readonly name: string;
  status: "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED";
  output?: Json;
  error?: string | undefined;
  cause?: string | undefined;
  /** The names of all states in the order in which they were entered. */
  readonly entered: string[];
}

/** Headers that a call of an API Gateway may not have. */
const REFUSED_HEADERS = /^(authorization|connection|content-md5|date|expect|host|server|te|transfer-encoding|trailer|upgrade|via)$/i;
/** No test needs as many: one that does never ends. */
const STATES_MAX = 1000;
/** The ARN of an execution, but for its name. */
const ARN = "arn:aws:states:eu-west-1:111122223333:execution:Machine:";
const NEVER = new Promise<never>(() => undefined);

/** The executions of a test. */
export class StepFunctions {
  readonly #executions = new Map<string, Execution>();
  readonly #tasks = new Map<string, ((news: TaskNews) => void) | "over">();
  /** Called at each request; true loses it or its answer: the gateway answers 504. */
  loses: (point: RequestPoint) => boolean = () => false;

  /**
   * @param locks sends a request to the lock service
   * @param functions the functions of the section, by name
   */
  constructor(
    readonly clock: Clock,
    readonly locks: typeof fetch,
    readonly functions: Readonly<Record<string, (payload: Members) => Promise<Json>>> = {},
  ) {}

  start(name: string, definition: Definition, input: Json): Execution {
    const execution: Execution = { name, status: "RUNNING", entered: [] };
    const end = (how: Partial<Execution>): void => void (execution.status === "RUNNING" && Object.assign(execution, how));
    this.#executions.set(`${ARN}${name}`, execution);
    new Run(this, execution).scope(definition, input, {}).then(
      (output) => end({ status: "SUCCEEDED", output }),
      (error: unknown) => {
        const failure = error instanceof StateError ? error : new StateError("States.Runtime", String((error as Error).stack));
        end({ status: "FAILED", error: failure.name, cause: failure.cause });
      },
    );
    return execution;
  }

  /**
   * Stops an execution from outside: none of its states runs any more. AWS doesn't say if it still takes its token.
   * @param takesToken true to take it, although nobody waits
   */
  stop(execution: Execution, { takesToken = false } = {}): void {
    execution.status = "ABORTED";
    if (takesToken) return;
    for (const token of this.#tasks.keys()) if (token.startsWith(`token-${execution.name}-`)) this.#tasks.set(token, "over");
  }

  /** Returns the status of an execution, as DescribeExecution does. */
  statusOf(arn: string): Execution["status"] | undefined {
    return this.#executions.get(arn)?.status;
  }

  /** Answers a task, as SendTaskSuccess and SendTaskFailure do. @throws an Error with AWS's name for it, if nobody waits under the token */
  answer(token: string, news: TaskNews): void {
    const waiting = this.#tasks.get(token);
    if (waiting === undefined || waiting === "over")
      throw Object.assign(new Error(token), { name: waiting ? "TaskTimedOut" : "InvalidToken" });
    this.#tasks.set(token, "over");
    waiting(news);
  }

  /** Waits for the answer under a token. */
  async awaitToken(token: string): Promise<Json> {
    const news = await new Promise<TaskNews>((resolve) => void this.#tasks.set(token, resolve));
    if ("error" in news) throw new StateError(news.error, news.cause);
    return news.output;
  }

  expire(token: string): void {
    if (this.#tasks.has(token)) this.#tasks.set(token, "over");
  }
}

/** The states of one execution, as they run. */
class Run {
  readonly #services: StepFunctions;
  readonly #execution: Execution;

  constructor(services: StepFunctions, execution: Execution) {
    this.#services = services;
    this.#execution = execution;
  }

  /** Runs states until one ends. `outer` has the variables of the scopes around them. */
  async scope({ StartAt, States }: Definition, given: Json, outer: Members): Promise<Json> {
    const own: Members = {};
    let [name, input] = [StartAt, given];
    for (;;) {
      if (this.#execution.status === "ABORTED") return NEVER;
      if (this.#execution.entered.push(name) > STATES_MAX) throw new Error(`more than ${STATES_MAX} states`);
      const state = States[name];
      if (state?.QueryLanguage !== "JSONata") throw new Error(`${name} is no state in JSONata`);
      const variables = { ...outer, ...own };
      const { output, assigned, next } = await this.#enter(name, state, input, variables);
      for (const variable of Object.keys(assigned)) if (variable in outer) throw new Error(`${variable} is of an outer scope`);
      Object.assign(own, assigned);
      if (next === undefined) return output;
      [name, input] = [next, output];
    }
  }

  /** Runs a state, again as its retriers say, and says where to go. */
  async #enter(
    name: string,
    state: StateJson,
    input: Json,
    variables: Members,
  ): Promise<{ output: Json; assigned: Members; next?: string | undefined }> {
    const retries = new Map<Retrier, number>();
    for (let attempt = 0; ; attempt++) {
      const token = `token-${this.#execution.name}-${name.replaceAll(" ", "_")}-${randomUUID()}`;
      const { name: executionName } = this.#execution;
      const context = { Execution: { Name: executionName, Id: `${ARN}${executionName}` }, State: { Name: name }, Task: { Token: token } };
      const evaluate = (template: Json, more: Members = {}) =>
        this.#evaluate(template, { states: { input, context, ...more }, ...variables });
      const leave = async ({ Assign = {}, Output }: Pick<StateJson, "Assign" | "Output">, value: Json, more: Members) => ({
        assigned: (await evaluate(Assign, more)) as Members,
        output: Output === undefined ? value : await evaluate(Output, more),
      });
      try {
        if (state.Type === "Fail") {
          const { Error: error = "", Cause: cause = "" } = (await evaluate({
            Error: state.Error ?? "",
            Cause: state.Cause ?? "",
          })) as Record<string, string>;
          throw new StateError(error, cause);
        }
        const result = await this.#resultOf(state, { input, token, variables, evaluate });
        return { ...(await leave(state, result, state.Type === "Pass" ? {} : { result })), next: state.Next };
      } catch (error) {
        if (!(error instanceof StateError)) throw error;
        const retrier = state.Retry?.find(({ ErrorEquals }) => matches(ErrorEquals, error.name));
        const made = retrier ? (retries.get(retrier) ?? 0) : 0;
        if (retrier && made < retrier.MaxAttempts) {
          retries.set(retrier, made + 1);
          const { IntervalSeconds = 1, BackoffRate = 2 } = retrier;
          await this.#sleep(IntervalSeconds * BackoffRate ** made);
          continue;
        }
        const catcher = state.Catch?.find(({ ErrorEquals }) => matches(ErrorEquals, error.name));
        if (!catcher) throw error;
        const errorOutput: Members = { Error: error.name, ...(error.cause !== undefined && { Cause: error.cause }) };
        return { ...(await leave(catcher, errorOutput, { errorOutput })), next: catcher.Next };
      }
    }
  }

  async #resultOf(
    state: StateJson,
    { input, token, variables, evaluate }: { input: Json; token: string; variables: Members; evaluate: (template: Json) => Promise<Json> },
  ): Promise<Json> {
    const { Type, Resource = "", Arguments = {}, TimeoutSeconds, Seconds = 0, Branches = [] } = state;
    if (Type === "Wait") await this.#sleep(Seconds);
    if (Type === "Parallel") return Promise.all(Branches.map((branch) => this.scope(branch, input, variables)));
    if (Type !== "Task") return input;
    const sent = this.#call(Resource, (await evaluate(Arguments)) as Members, token);
    if (TimeoutSeconds === undefined) return sent;
    const expired = this.#sleep(TimeoutSeconds).then(() => {
      this.#services.expire(token);
      throw new StateError("States.Timeout");
    });
    return Promise.race([sent, expired]);
  }

  async #call(resource: string, given: Members, token: string): Promise<Json> {
    const { functions } = this.#services;
    if (resource === "arn:aws:states:::lambda:invoke") {
      const name = (given["FunctionName"] as string).split(":").at(-1) ?? "";
      try {
        return { Payload: await functions[name]!(given["Payload"] as Members) };
      } catch (error) {
        throw new StateError((error as Error).name, (error as Error).message);
      }
    }
    const waits = resource === "arn:aws:states:::apigateway:invoke.waitForTaskToken";
    if (!waits && resource !== "arn:aws:states:::apigateway:invoke") throw new Error(`${resource} isn't known here`);
    const told = waits ? this.#services.awaitToken(token) : undefined;
    told?.catch(() => undefined);
    const answer = await this.#request(given);
    return told ?? answer;
  }

  /** Calls the API as the integration of Step Functions does. */
  async #request({ ApiEndpoint, Method, Headers = {}, Path, RequestBody, AuthType }: Members): Promise<Json> {
    if (AuthType !== "IAM_ROLE" || !/^[0-9a-z]+\.execute-api\.[a-z0-9-]+\.amazonaws\.com$/.test(ApiEndpoint as string))
      throw new StateError("States.Runtime", "the request isn't signed, or not for an API");
    const headers = Object.entries(Headers as Record<string, string[]>).map(([name, values]) => {
      if (!Array.isArray(values) || REFUSED_HEADERS.test(name)) throw new StateError("States.Runtime", `the header ${name} is refused`);
      return [name.toLowerCase(), values.join(", ")] as const;
    });
    const what = `${Method as string} ${(Path as string).replace(/leases\/[^/]+/, "leases/{id}")}`;
    const { name } = this.#execution;
    const { loses, locks } = this.#services;
    if (loses({ name, at: "before", what })) throw new StateError(`ApiGateway.504`);
    const response = await locks(`https://${ApiEndpoint as string}${Path as string}`, {
      method: Method as string,
      headers: Object.fromEntries(headers),
      ...(RequestBody !== undefined && { body: JSON.stringify(RequestBody) }),
    });
    const text = await response.text();
    if (loses({ name, at: "after", what })) throw new StateError(`ApiGateway.504`);
    if (!response.ok) throw new StateError(`ApiGateway.${response.status}`, text);
    return {
      StatusCode: response.status,
      Headers: Object.fromEntries([...response.headers].map(([header, value]) => [header, [value]])),
      ...(text !== "" && { ResponseBody: JSON.parse(text) as Json }),
    };
  }

  /** Evaluates every expression in a template. */
  async #evaluate(template: Json, variables: Members): Promise<Json> {
    if (Array.isArray(template)) return Promise.all(template.map((member) => this.#evaluate(member, variables)));
    if (typeof template === "object" && template !== null) {
      const members = Object.entries(template).map(async ([name, member]) => [name, await this.#evaluate(member, variables)] as const);
      return Object.fromEntries(await Promise.all(members));
    }
    const expression = typeof template === "string" ? /^\{%([^]*)%\}$/.exec(template)?.[1] : undefined;
    if (expression === undefined) return template;
    const functions = { millis: () => this.#services.clock.wallMs(), uuid: () => randomUUID() };
    try {
      const value: unknown = await jsonata(expression).evaluate({}, { ...variables, ...functions });
      if (value !== undefined) return JSON.parse(JSON.stringify(value)) as Json;
    } catch (error) {
      throw new StateError("States.QueryEvaluationError", (error as Error).message);
    }
    throw new StateError("States.QueryEvaluationError", `${expression} has no value`);
  }

  #sleep(seconds: number): Promise<void> {
    return new Promise((resolve) => void this.#services.clock.after(seconds * 1000, resolve));
  }
}

function matches(errors: readonly string[], name: string): boolean {
  if (errors.includes("States.ALL")) return true;
  return errors.includes(name) || (errors.includes("States.TaskFailed") && name !== "States.Timeout");
}
