/**
 * Durable executions of Lambda, as far as the SDK and an agent of sleepers use them, on a clock that a test turns. It is stricter than
 * Amazon's local runner: a callback takes one completion, and an invocation that is over can write nothing. A test can end the process of
 * an invocation at any of its requests.
 */
import type {
  CheckpointDurableExecutionRequest,
  CheckpointDurableExecutionResponse,
  DurableContext,
  DurableExecutionInvocationInput,
  DurableExecutionInvocationOutput,
  ErrorObject,
  OperationUpdate,
  WireOperation,
} from "@aws/durable-execution-sdk-js";
import { InvocationStatus, withDurableExecution } from "@aws/durable-execution-sdk-js";
import type { Clock } from "../../lib/core/time.js";

/** A request of an invocation: to Lambda or to the lock service, before it arrives or after it was carried out. */
export interface RequestPoint {
  readonly name: string;
  readonly to: "lambda" | "locks";
  readonly at: "before" | "after";
  /** The text of the request, as far as a test needs it: operations with their actions, or method and path. */
  readonly what: string;
}

/** The process of one invocation. Once it is dead, none of its requests arrives, and none is answered. */
export interface Sandbox {
  readonly fetch: typeof fetch;
  readonly isDead: () => boolean;
  /** Ends the process here and now. */
  readonly die: () => Promise<never>;
}

/** The work of a function, in one of its invocations. */
export type Handler = (ctx: DurableContext, sandbox: Sandbox) => Promise<unknown>;

/** The news for a callback. */
export type Completion = { readonly Result: string } | { readonly Error: ErrorObject };

const FINISHED: ReadonlySet<string | undefined> = new Set(["SUCCEEDED", "FAILED", "TIMED_OUT"]);
/** No test needs as many: one that does never ends. */
const INVOCATIONS_MAX = 200;
/** The ARN of an execution, but for its name. */
const ARN = "arn:aws:lambda:us-east-1:111122223333:function:f:1/durable-execution/";
const NEVER = new Promise<never>(() => undefined);

/** One execution: its history, and how it ended. */
export class Execution {
  readonly #operations = new Map<string, WireOperation>();
  status: "RUNNING" | "SUCCEEDED" | "FAILED" | "STOPPED" = "RUNNING";
  result: unknown;
  error: ErrorObject | undefined;
  invocations = 0;
  /** The token of the invocation in progress: who has another can write nothing. */
  token = "";
  /** True if the next invocation has news. */
  isDue = true;
  isRunning = false;

  constructor(
    readonly name: string,
    readonly handler: Handler,
    readonly clock: Clock,
  ) {
    this.#operations.set(name, {
      Id: name,
      Type: "EXECUTION",
      Status: "STARTED",
      StartTimestamp: this.#now(),
      ExecutionDetails: { InputPayload: "{}" },
    });
  }

  /** All operations but the execution's own. */
  get operations(): readonly WireOperation[] {
    return [...this.#operations.values()].slice(1);
  }

  /** Applies the updates of a checkpoint, and returns the operations as they are then. */
  apply(updates: readonly OperationUpdate[]): readonly WireOperation[] {
    return updates.map((update) => {
      const before = this.#operations.get(update.Id ?? "");
      if (FINISHED.has(before?.Status)) throw new Error(`InvalidParameterValueException: ${update.Name} is over`);
      const { Id, ParentId, Name, Type, SubType } = update;
      const after: WireOperation = { ...(before ?? { Id, ParentId, Name, Type, SubType, StartTimestamp: this.#now(), Status: "STARTED" }) };
      this.#change(after, update);
      this.#operations.set(Id ?? "", after);
      return after;
    });
  }

  #change(operation: WireOperation, update: OperationUpdate): void {
    const { Action, Type, Payload: Result, Error, WaitOptions, CallbackOptions, StepOptions } = update;
    if (Action === "SUCCEED") operation.Status = "SUCCEEDED";
    if (Action === "FAIL") operation.Status = "FAILED";
    if (Type === "CONTEXT") operation.ContextDetails = { Result, Error };
    if (Type === "WAIT") {
      operation.WaitDetails = { ScheduledEndTimestamp: this.#now(WaitOptions?.WaitSeconds) };
      this.#later(operation, WaitOptions?.WaitSeconds, "SUCCEEDED");
    }
    if (Type === "CALLBACK") {
      operation.CallbackDetails = { CallbackId: Buffer.from(JSON.stringify([this.name, update.Id])).toString("base64") };
      this.#later(operation, CallbackOptions?.TimeoutSeconds, "TIMED_OUT");
    }
    if (Type !== "STEP") return;
    const attempts = operation.StepDetails?.Attempt ?? 0;
    operation.StepDetails = { Attempt: attempts + Number(Action !== "START"), Result, Error };
    if (Action !== "RETRY") return void (Action === "START" && (operation.Status = "STARTED"));
    operation.Status = "PENDING";
    operation.StepDetails.NextAttemptTimestamp = this.#now(StepOptions?.NextAttemptDelaySeconds);
    this.#later(operation, StepOptions?.NextAttemptDelaySeconds, "READY");
  }

  /** Changes the state of an operation after this time, unless something else ended it, and makes an invocation due. */
  #later(operation: WireOperation, seconds: number | undefined, status: "SUCCEEDED" | "TIMED_OUT" | "READY"): void {
    if (seconds === undefined) return;
    this.clock.after(seconds * 1000, () => void this.#end(operation, { Status: status }));
  }

  #end(operation: WireOperation, change: Partial<WireOperation>): void {
    const now = this.#operations.get(operation.Id ?? "");
    if (!now || FINISHED.has(now.Status) || this.status !== "RUNNING") return;
    this.#operations.set(operation.Id ?? "", { ...now, ...change });
    this.isDue = true;
  }

  /** Stops the execution, as somebody may at any time: nothing of it runs again. */
  stop(): void {
    this.status = "STOPPED";
    this.token = "";
  }

  /** Completes a callback. @throws an Error with AWS's name for it, if nobody waits there */
  complete(operationId: string, completion: Completion): void {
    const operation = this.#operations.get(operationId);
    if (!operation?.CallbackDetails) throw named("ResourceNotFoundException");
    if (FINISHED.has(operation.Status) || this.status !== "RUNNING") throw named("CallbackTimeoutException");
    const CallbackDetails = { ...operation.CallbackDetails, ...completion };
    this.#end(operation, { Status: "Result" in completion ? "SUCCEEDED" : "FAILED", CallbackDetails });
  }

  /** Returns the history as an invocation gets it. */
  state(): WireOperation[] {
    return [...this.#operations.values()];
  }

  #now(afterSeconds = 0): Date {
    return new Date(this.clock.wallMs() + afterSeconds * 1000);
  }
}

/** Returns the method and the path of a request of a client. */
export function pathOf(url: Parameters<typeof fetch>[0], { method = "" }: RequestInit = {}): string {
  return `${method} ${new URL(url as string).pathname}`;
}

function named(name: string): Error {
  return Object.assign(new Error(name), { name });
}

/** The executions of a test. */
export class DurableLambda {
  readonly executions = new Map<string, Execution>();
  /** Called at each request; true ends the process of the invocation there. */
  kills: (point: RequestPoint) => boolean = () => false;

  /** @param locks sends a request to the lock service */
  constructor(
    readonly clock: Clock,
    readonly locks: typeof fetch,
  ) {}

  start(name: string, handler: Handler): Execution {
    const execution = new Execution(name, handler, this.clock);
    this.executions.set(name, execution);
    return execution;
  }

  /** Returns the status of an execution, as `GetDurableExecution` does. */
  statusOf(arn: string): Execution["status"] | undefined {
    return this.executions.get(arn.replace(ARN, ""))?.status;
  }

  /** Invokes what is due, until nothing is. Several executions run at the same time. */
  async run(): Promise<void> {
    for (;;) {
      const due = [...this.executions.values()].filter(({ isDue, status, isRunning }) => isDue && !isRunning && status === "RUNNING");
      if (due.length === 0) return;
      await Promise.all(due.map((execution) => this.#invoke(execution)));
    }
  }

  /** Completes a callback, as the API of Lambda does. @throws an Error with AWS's name for it, if nobody waits there */
  complete(callbackId: string, completion: Completion): void {
    const [name = "", operationId = ""] = JSON.parse(Buffer.from(callbackId, "base64").toString()) as string[];
    const execution = this.executions.get(name);
    if (!execution) throw named("ResourceNotFoundException");
    execution.complete(operationId, completion);
  }

  async #invoke(execution: Execution): Promise<void> {
    execution.isDue = false;
    execution.isRunning = true;
    if (++execution.invocations > INVOCATIONS_MAX) throw new Error(`${execution.name} was invoked ${INVOCATIONS_MAX} times`);
    execution.token = `${execution.name}/${execution.invocations}`;
    const output = await new Promise<DurableExecutionInvocationOutput | undefined>((resolve, reject) => {
      this.#handle(execution, () => resolve(undefined)).then(resolve, reject);
    });
    execution.isRunning = false;
    execution.token = "";
    // Lambda invokes an execution again whose invocation ended without an answer.
    if (!output) return void (execution.isDue = true);
    if (output.Status === InvocationStatus.PENDING || execution.status === "STOPPED") return;
    execution.status = output.Status;
    if (output.Status === InvocationStatus.SUCCEEDED)
      execution.result = output.Result === undefined ? undefined : (JSON.parse(output.Result) as unknown);
    else execution.error = output.Error;
  }

  #handle(execution: Execution, onDeath: () => void): Promise<DurableExecutionInvocationOutput> {
    const { token: CheckpointToken, name } = execution;
    let isDead = false;
    const die = (): Promise<never> => {
      isDead = true;
      onDeath();
      return NEVER;
    };
    const request = async <T>(to: RequestPoint["to"], what: string, send: () => Promise<T> | T): Promise<T> => {
      if (isDead || this.kills({ name, to, at: "before", what })) return die();
      const answer = await send();
      // The process may have died meanwhile.
      return (isDead as boolean) || this.kills({ name, to, at: "after", what }) ? die() : answer;
    };
    const sandbox: Sandbox = {
      isDead: () => isDead,
      die,
      fetch: (url, init) => request("locks", pathOf(url, init), () => this.locks(url, init)),
    };
    const durableExecutionClient = {
      getExecutionState: async () => ({ Operations: execution.state() }),
      checkpoint: (asked: CheckpointDurableExecutionRequest): Promise<CheckpointDurableExecutionResponse> => {
        const { Updates = [] } = asked;
        const what = Updates.map(({ Action, Name }) => `${Action} ${Name}`).join(", ");
        return request("lambda", what, () => {
          if (asked.CheckpointToken !== execution.token) throw named("InvalidParameterValueException");
          return { CheckpointToken, NewExecutionState: { Operations: [...execution.apply(Updates)] } };
        });
      },
    };
    const handler = withDurableExecution((_event: unknown, ctx) => execution.handler(ctx, sandbox), { durableExecutionClient });
    const event: DurableExecutionInvocationInput = {
      ...{ DurableExecutionArn: `${ARN}${name}`, CheckpointToken },
      InitialExecutionState: { Operations: execution.state() },
    };
    return handler(event, { awsRequestId: CheckpointToken, getRemainingTimeInMillis: () => 900_000 } as never);
  }
}
