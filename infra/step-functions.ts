/**
 * `holdfast/step-functions`: a part of a state machine that runs under a lock, for your own CDK app. All of it is states that call the service's
 * API; there is no function. While the key is held by another, the execution sleeps in the key's queue, and the service's agent wakes it.
 *
 *  1. lease id   the id is in a variable of the execution before it is used, so a retry sends the same
 *  2. acquire    without a wait
 *  3. sleep      if it is held: queued with the task's token, until the agent has the key for it
 *  4. section    your states. Nobody renews the lease meanwhile, unless a state of yours does, or the agent because it is tied
 *  5. confirm    the lease lasted as long as the section. Without an answer to that, the section fails
 *  6. release
 *
 * A failure of any of them goes to `give up`, which releases or cancels, and then on as you say. A request of unknown outcome is sent again
 * under the same id, or cancelled, so that nothing stays held.
 */
import { createHash } from "node:crypto";
import { Duration, Stack, Token } from "aws-cdk-lib";
import { HttpJwtAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IChainable, INextable, State } from "aws-cdk-lib/aws-stepfunctions";
import {
  Errors,
  Fail,
  IntegrationPattern,
  JitterType,
  Parallel,
  Pass,
  QueryLanguage,
  StateMachineFragment,
  TaskInput,
  Timeout,
} from "aws-cdk-lib/aws-stepfunctions";
import { AuthType, CallApiGatewayHttpApiEndpoint, HttpMethod } from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { type LeaseOptions, checkKey, checkKind, PARAMETERS } from "../lib/client/calls/options.js";
import { type Checks, boolean, CHECKS, checkOptions, checkWork, ms, refused, unchecked } from "../lib/client/wire/checks.js";
import { given } from "../lib/core/members.js";
import { TASK_TOKEN_HEADER } from "../lib/contract/requests.js";
import { ROUTES } from "../lib/contract/routes.js";
import * as LIMITS from "../lib/core/request-limits.js";
import { leaseRight } from "./access.js";
import type { LockService } from "./lock-service.js";

/** Options of a section. */
export interface LockedSectionProps extends Pick<LeaseOptions, "owner" | "mode" | "limit" | "permits" | "priority"> {
  /** The service, whose callers sign with IAM. It has an agent (`wake`), unless `waitMs` is 0 and the lease isn't tied. */
  readonly service: LockService;
  /** The key, or a JSONata expression that makes it, such as `{% 'ORDER_' & $string($states.input.id) %}`. */
  readonly key: string;
  /** The lease's length in ms. It must outlast the section, unless it is `tied` or a state of the section renews it. (1 000 – 86 400 000) */
  readonly leaseMs: number;
  /**
   * True to tie the lease to the execution: the agent renews it while the execution runs, and releases it within about a minute of its end, also
   * if somebody stops it. `leaseMs` is 180 000 at least then, and the service's `wake` names the state machine. @default false
   */
  readonly tied?: boolean | undefined;
  /** The time to wait for the key, in ms; 0 asks once. The execution sleeps meanwhile. @default 3 600 000, at most a year */
  readonly waitMs?: number | undefined;
  /** A label for people who inspect the key, or a JSONata expression. @default the execution's name */
  readonly owner?: string | undefined;
  /** Makes the states of the section: their input is the section's, and their output becomes its output. */
  readonly work: (lock: SectionLock) => IChainable;
  /** The states after a failure, once nothing is held; their input is `{ Error, Cause }`. @default the execution fails with both */
  readonly onFailure?: IChainable | undefined;
}

/** The lock, for the states of a section. */
export interface SectionLock {
  /** The fencing token as JSONata without its delimiters: `{% ${lock.fencingToken} %}`. */
  readonly fencingToken: string;
  /** The key, likewise. */
  readonly key: string;
  /**
   * Makes a state that renews the lease, by `leaseMs` from then if it is given, else by its own length. It passes its input on. If the lease
   * has ended it fails with `ApiGateway.410`.
   */
  renew(id: string, options?: { readonly leaseMs?: number | undefined }): IChainable & INextable;
}

const DEFAULT_WAIT_MS = 3_600_000;
/** The time for one request, which the API itself answers within 30 s. */
const REQUEST_TIMEOUT = Duration.minutes(1);
const { meta: _meta, ...OF_LEASE } = PARAMETERS;
const PROPS: Checks<LockedSectionProps> = {
  service: unchecked,
  key: unchecked,
  ...OF_LEASE,
  tied: boolean,
  waitMs: ms(0, LIMITS.sleepMaxMs),
  work: unchecked,
  onFailure: unchecked,
};
/** A variable's name has at most 80 characters in all. */
const VARIABLE_CHARS = 60;
const DIGEST_CHARS = 12;
/** The number of ids that are tried if the service refuses them as not new enough. */
const IDS_MAX = 5;

const status = (code: number): string => `ApiGateway.${code}`;
const LOCKED = status(423);
/** The answers to an id that is over, or not new enough for a busy key. */
const STALE = [status(410), status(422)];
/** The end of a wait, as the agent tells it. */
const LOST_PLACE = "Holdfast.LostPlace";
/** The same request can't succeed after these. All else is sent again, also what has no name here. */
const DEFINITE = [...[400, 403, 404, 405, 409, 410, 413, 415, 422, 423].map(status), LOST_PLACE, "States.QueryEvaluationError"];

const INPUT = "{% $states.input %}";
const KEY_RULE = `it is 1 to ${LIMITS.keyChars} characters of A-Z a-z 0-9 . _ : ~ - and not . or ..`;
/** A UUIDv7: the time, and the random part of a UUIDv4. */
const NEW_ID =
  "($time := $pad($formatBase($millis(), 16), -12, '0'); $substring($time, 0, 8) & '-' & $substring($time, 8) & '-7' & $substring($uuid(), 15))";

/** One request to the service, as a state. */
class LeaseCall extends CallApiGatewayHttpApiEndpoint {
  /** In place of the CDK's own, which names the path before JSONata is evaluated, and no stage. */
  protected override readonly taskPolicies: PolicyStatement[];

  constructor(scope: Construct, name: string, { service, variable, literalKey }: Place, { operation, ...more }: CallOptions) {
    const { wait, body, assign, outputs = INPUT, idPath = `${variable}.leaseId` } = more;
    const headers = {
      "Content-Type": ["application/json"],
      ...(wait && { Prefer: [`wait=${wait.toSeconds()}`], [TASK_TOKEN_HEADER]: ["{% $states.context.Task.Token %}"] }),
    };
    const [method, path] = ROUTES[operation].split(" ") as [keyof typeof HttpMethod, string];
    const [, beforeKey, beforeId, after] = /^(.*)\{key\}(.*)\{leaseId\}(.*)$/.exec(path) as unknown as [string, string, string, string];
    super(scope, name, {
      stateName: name,
      queryLanguage: QueryLanguage.JSONATA,
      apiId: service.api.apiId,
      apiStack: Stack.of(service),
      authType: AuthType.IAM_ROLE,
      method: HttpMethod[method],
      apiPath: `{% '${beforeKey}' & ${variable}.key & '${beforeId}' & ${idPath}${after === "" ? "" : ` & '${after}'`} %}`,
      ...(body && { headers: TaskInput.fromObject(headers) }),
      ...(body && { requestBody: TaskInput.fromObject(body) }),
      integrationPattern: wait ? IntegrationPattern.WAIT_FOR_TASK_TOKEN : IntegrationPattern.REQUEST_RESPONSE,
      taskTimeout: Timeout.duration(wait ?? REQUEST_TIMEOUT),
      ...(assign && { assign }),
      outputs,
    });
    const { actions, resourceArns: resources } = leaseRight(service.api, operation, literalKey);
    this.taskPolicies = [new PolicyStatement({ actions, resources })];
    this.addRetry({ errors: DEFINITE, maxAttempts: 0 });
    this.addRetry({
      // A wait that timed out is over; a request that did is sent again.
      errors: [...(wait ? [] : [Errors.TIMEOUT]), Errors.TASKS_FAILED],
      interval: Duration.seconds(1),
      maxAttempts: 5,
      backoffRate: 2,
      jitterStrategy: JitterType.FULL,
    });
  }
}

/** The lock of a section, as all its states know it. */
interface Place {
  readonly service: LockService;
  /** The variable of the execution that has the key, the leaseId, the token and the failure, in JSONata. */
  readonly variable: string;
  /** The key, if it is known at synthesis. */
  readonly literalKey: string | undefined;
}

/** A request. */
interface CallOptions {
  readonly operation: "acquire" | "check" | "release" | "renew";
  /** Wait for the task's token, at most for that long. */
  readonly wait?: Duration;
  readonly body?: Record<string, unknown>;
  readonly assign?: Record<string, unknown>;
  /** @default the state's input */
  readonly outputs?: unknown;
  /** The leaseId in JSONata. */
  readonly idPath?: string;
}

/**
 * A part of a state machine that runs under a lock. Its states bring the permissions to call the service to the state machine's role.
 * @throws Error if the service takes tokens, or has no agent and somebody shall wait; InvalidRequestError naming the invalid option
 */
export class LockedSection extends StateMachineFragment {
  readonly startState: State;
  readonly endStates: INextable[];
  readonly #place: Place;
  readonly #giveUp: LeaseCall;

  constructor(scope: Construct, id: string, props: LockedSectionProps) {
    super(scope, id);
    checkProps(props);
    const { service, key, leaseMs, tied = false, waitMs = DEFAULT_WAIT_MS, work, onFailure } = props;
    const variable = `$lock_${nameOf(id)}`;
    const isLiteral = expressionIn(key) === undefined && !Token.isUnresolved(key);
    this.#place = { service, variable, literalKey: isLiteral ? key : undefined };

    const { owner = "{% $states.context.Execution.Name %}", mode, limit, permits, priority } = props;
    const tie = tied ? { executionArn: "{% $states.context.Execution.Id %}" } : undefined;
    const body = { leaseMs, owner, ...given({ mode, limit, permits, priority, tie }) };
    const idPath = `(${variable}.ids > ${IDS_MAX} ? $error('${IDS_MAX} leaseIds were refused as not new') : ${variable}.leaseId)`;

    const leaseId = Pass.jsonata(this, `${id}: lease id`, { assign: { [variable.slice(1)]: firstOf(key) } });
    const assign = this.#assign("{ 'fencingToken': $states.result.ResponseBody.fencingToken }");
    const acquire = this.#call("acquire", { operation: "acquire", body, assign, idPath });
    this.#giveUp = this.#end(onFailure);
    const section = this.#section(work);

    leaseId.next(acquire).next(section);
    this.#renewId(acquire);
    if (waitMs === 0) this.#fail(acquire, [LOCKED], `'Holdfast.LockTimeout'`, `${variable}.key & ': held by another lease'`);
    else acquire.addCatch(this.#sleep(waitMs, body, idPath, section), { errors: [LOCKED], outputs: INPUT });
    this.#fail(acquire);
    this.startState = leaseId;
    this.endStates = this.#release(section);
  }

  /** Waits for the key asleep. The section follows. */
  #sleep(waitMs: number, body: { readonly leaseMs: number }, idPath: string, section: Parallel): LeaseCall {
    const wait = Duration.seconds(Math.ceil(waitMs / 1000));
    const sleep = this.#call("sleep", {
      operation: "acquire",
      wait,
      idPath,
      body: { ...body, leaseMs: Math.max(body.leaseMs, LIMITS.agentLeaseMinMs) },
      assign: this.#assign("{ 'fencingToken': $states.result.fencingToken }"),
    });
    this.#renewId(sleep);
    const cause = `${this.#place.variable}.key & ': not granted within ${wait.toSeconds()} s'`;
    this.#fail(sleep, [Errors.TIMEOUT, LOST_PLACE], `'Holdfast.LockTimeout'`, cause);
    this.#fail(sleep);
    sleep.next(section);
    return sleep;
  }

  /** Runs the states of the caller, all failures of which have one way out. */
  #section(work: LockedSectionProps["work"]): Parallel {
    const { variable } = this.#place;
    const renew: SectionLock["renew"] = (name, { leaseMs } = {}) => {
      if (leaseMs !== undefined) CHECKS.leaseMs("leaseMs", leaseMs);
      return new LeaseCall(this, name, this.#place, { operation: "renew", ...(leaseMs !== undefined && { body: { leaseMs } }) });
    };
    const lock: SectionLock = { fencingToken: `${variable}.fencingToken`, key: `${variable}.key`, renew };
    const section = Parallel.jsonata(this, `${this.id}: section`, { outputs: "{% $states.result[0] %}" });
    section.branch(work(lock));
    this.#fail(section);
    return section;
  }

  /** Confirms that the lease lasted, and releases it. Returns the ends of the fragment. */
  #release(section: Parallel): INextable[] {
    const confirm = this.#call("confirm", { operation: "check" });
    const release = this.#call("release", { operation: "release" });
    const unreleased = Pass.jsonata(this, `${this.id}: unreleased`, { comment: "No answer: the key is free when the lease ends" });
    this.#fail(confirm, [status(410)], `'Holdfast.LockLost'`, `${this.#place.variable}.key & ': the lease ended before the section did'`);
    this.#fail(confirm, [Errors.ALL], `'Holdfast.Unconfirmed'`, `${this.#place.variable}.key & ': nobody said whether the lease lasted'`);
    release.addCatch(unreleased, { outputs: INPUT });
    section.next(confirm).next(release);
    return [release, unreleased];
  }

  /** Ends the lease or the wait after a failure, and goes on as the caller says. */
  #end(onFailure: IChainable | undefined): LeaseCall {
    const { variable } = this.#place;
    const [error, cause] = [`{% ${variable}.failure.Error %}`, `{% ${variable}.failure.Cause %}`];
    const outputs = { Error: error, Cause: cause };
    const giveUp = this.#call("give up", { operation: "release", outputs });
    const after = onFailure ?? Fail.jsonata(this, `${this.id}: failed`, { error, cause });
    giveUp.addCatch(after, { outputs });
    giveUp.next(after);
    return giveUp;
  }

  #call(name: string, options: CallOptions): LeaseCall {
    return new LeaseCall(this, `${this.id}: ${name}`, this.#place, options);
  }

  /** Lets failures of a state end the lease. Without `name`, they keep theirs. */
  #fail(state: LeaseCall | Parallel, errors: string[] = [Errors.ALL], name?: string, cause?: string): void {
    const failure = name === undefined ? "$merge([{ 'Cause': '' }, $states.errorOutput])" : `{ 'Error': ${name}, 'Cause': ${cause} }`;
    state.addCatch(this.#giveUp, { errors, assign: this.#assign(`{ 'failure': ${failure} }`), outputs: INPUT });
  }

  /** Lets the state try again under a new id if the service refuses its id as not new. */
  #renewId(state: LeaseCall): void {
    const more = `{ 'leaseId': ${NEW_ID}, 'ids': ${this.#place.variable}.ids + 1 }`;
    state.addCatch(state, { errors: STALE, assign: this.#assign(more), outputs: INPUT });
  }

  #assign(more: string): Record<string, string> {
    const { variable } = this.#place;
    return { [variable.slice(1)]: `{% $merge([${variable}, ${more}]) %}` };
  }
}

/** Returns the id as a part of a variable's name. A digest tells ids apart that differ only in what a name can't have. */
function nameOf(id: string): string {
  if (/^\w+$/.test(id)) return id;
  const digest = createHash("sha256").update(id).digest("hex");
  return `${id.replace(/\W/g, "_").slice(0, VARIABLE_CHARS)}_${digest.slice(0, DIGEST_CHARS)}`;
}

/** Returns JSONata that makes the variable of a section. */
function firstOf(key: string): string {
  const isKey = `$type($key) = 'string' and $contains($key, /^[A-Za-z0-9._:~-]{1,${LIMITS.keyChars}}$/) and $not($key in ['.', '..'])`;
  const expression = expressionIn(key) ?? JSON.stringify(key);
  return `{% ($key := (${expression}); $assert(${isKey}, 'key: ' & $string($key) & ' given; ${KEY_RULE}'); { 'key': $key, 'leaseId': ${NEW_ID}, 'ids': 1 }) %}`;
}

/** Returns the JSONata in a text; undefined if it is a literal. */
function expressionIn(text: string): string | undefined {
  return /^\{%([^]*)%\}$/.exec(text)?.[1]?.trim();
}

function checkProps(props: LockedSectionProps): void {
  checkOptions("LockedSection", props, PROPS);
  checkKind(props);
  const { service, key, leaseMs, tied = false, waitMs = DEFAULT_WAIT_MS, work } = props;
  if (typeof key !== "string" || (expressionIn(key) === undefined && !Token.isUnresolved(key))) checkKey(key);
  if ((leaseMs as unknown) === undefined) throw refused("leaseMs", leaseMs, "it must outlast the section");
  if (tied) ms(LIMITS.agentLeaseMinMs, LIMITS.leaseMaxMs)("leaseMs", leaseMs);
  checkWork("LockedSection", "work", work, "work is the function that makes the states");
  if (service.api.defaultAuthorizer instanceof HttpJwtAuthorizer)
    throw new Error("service: it takes tokens (jwt), and Step Functions signs with IAM");
  if (tied && !service.agent) throw new Error("service: it has no agent that renews a tied lease; give it wake");
  if (waitMs > 0 && !service.agent) throw new Error("service: it has no agent that wakes who waits; give it wake: true, or give waitMs: 0");
}
