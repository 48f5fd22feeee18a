/**
 * Step Functions and Lambda as far as an agent calls them, over HTTP: a token or an id takes one answer. Afterwards, and if nobody waits under
 * it, it is refused by one of the errors that AWS names. They also say how executions are.
 */
import { type IncomingMessage, createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The news that a target got. */
export type Heard = { readonly got: unknown } | { readonly failed: string };

const OPERATION = /^AWSStepFunctions\.SendTask(Success|Failure)$/;
const EXECUTION_PATH = /^\/2025-12-01\/durable-executions\/([^/?]+)\?IncludeExecutionData=false$/;
const PATH = /^\/2025-12-01\/durable-execution-callbacks\/([^/]+)\/(succeed|fail)$/;

const OWN_REGION = "us-east-1";

/** An error of AWS, in the form of the protocol that was used. */
class Refusal extends Error {
  constructor(
    override readonly name: string,
    readonly status = 400,
  ) {
    super(name);
  }
}

/** The targets of sleepers, on localhost. */
export interface WakeTargets {
  /** The environment of an agent that tells them. */
  readonly env: Readonly<Record<string, string>>;
  /** The news of each target, by its token or id. */
  readonly heard: ReadonlyMap<string, Heard>;
  /** Makes a token or an id under which somebody waits, in one Region. @param region by default the agent's own */
  wait(name: string, region?: string): string;
  /** Ends a wait, as a timeout does. */
  timeOut(name: string): void;
  /** Sets the status of an execution; undefined: nothing is kept of it any more. */
  setExecution(arn: string, status: string | undefined): void;
  /** Refuses the next calls: they tell nobody. */
  throttle(calls: number): void;
  close(): Promise<void>;
}

/** Starts them. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function startWakeTargets(): Promise<WakeTargets> {
  const waiting = new Map<string, "waits" | "over">();
  const regions = new Map<string, string>();
  const heard = new Map<string, Heard>();
  const executions = new Map<string, string | undefined>();
  let throttled = 0;

  const take = (name: string, region: string, over: Refusal, unknown: Refusal): void => {
    if (throttled > 0) throw (throttled--, new Refusal("ThrottlingException"));
    const state = regions.get(name) === region ? waiting.get(name) : undefined;
    if (state === undefined) throw unknown;
    if (state === "over") throw over;
    waiting.set(name, "over");
  };

  function statusOf(arn: string, unknown: Refusal): string {
    const tooFast = arn.includes(":lambda:") ? "TooManyRequestsException" : "ThrottlingException";
    if (throttled > 0) throw (throttled--, new Refusal(tooFast, 429));
    const status = executions.get(arn);
    if (status === undefined) throw unknown;
    return status;
  }

  function answer(request: IncomingMessage, text: string): object {
    const { headers, url = "", method } = request;
    const body = JSON.parse(text || "{}") as Record<string, string>;
    const service = headers["x-amz-target"] === undefined ? "lambda" : "states";
    const asked = EXECUTION_PATH.exec(url)?.[1];
    const [, signed = ""] = /^AWS4-HMAC-SHA256 Credential=local\/\d+\/([^/]+)\//.exec(headers.authorization ?? "") ?? [];
    const [, , , region = signed] = (asked === undefined ? body["executionArn"] : decodeURIComponent(asked))?.split(":") ?? [];
    if (method !== (asked === undefined ? "POST" : "GET") || !headers.authorization?.includes(`/${region}/${service}/aws4_request`))
      throw new Refusal("AccessDenied", 403);
    if (asked !== undefined) return { Status: statusOf(decodeURIComponent(asked), new Refusal("ResourceNotFoundException", 404)) };
    if (headers["x-amz-target"] === "AWSStepFunctions.DescribeExecution") {
      const { executionArn = "", includedData } = body;
      if (includedData !== "METADATA_ONLY") throw new Refusal("KmsAccessDeniedException");
      return { status: statusOf(executionArn, new Refusal("ExecutionDoesNotExist")) };
    }
    if (service === "states") {
      const [, outcome] = OPERATION.exec(String(headers["x-amz-target"])) ?? [];
      const { taskToken = "", output = "", error = "", cause } = body;
      if (!taskToken.startsWith("token-")) throw new Refusal("InvalidToken");
      take(taskToken, region, new Refusal("TaskTimedOut"), new Refusal("TaskDoesNotExist"));
      if (outcome === "Failure" && !cause) throw new Refusal("ValidationException");
      heard.set(taskToken, outcome === "Success" ? { got: JSON.parse(output) } : { failed: error });
      return {};
    }
    const [, id = "", how] = PATH.exec(url) ?? [];
    const name = decodeURIComponent(id);
    take(name, region, new Refusal("CallbackTimeoutException"), new Refusal("ResourceNotFoundException", 404));
    heard.set(name, how === "succeed" ? { got: body } : { failed: body["ErrorType"] ?? "" });
    return {};
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      try {
        const said = answer(request, Buffer.concat(chunks).toString());
        response.writeHead(200, { "content-type": "application/x-amz-json-1.0" }).end(JSON.stringify(said));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        // AWS quotes the token in its message.
        const message = `refused: ${Buffer.concat(chunks).toString()}`;
        response.writeHead(error.status, { "x-amzn-errortype": error.name }).end(JSON.stringify({ __type: error.name, message }));
      }
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    env: {
      AWS_ENDPOINT_URL_SFN: url,
      AWS_ENDPOINT_URL_LAMBDA: url,
      AWS_REGION: OWN_REGION,
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
    },
    heard,
    wait(name, region = OWN_REGION) {
      waiting.set(name, "waits");
      regions.set(name, region);
      return name;
    },
    timeOut: (name) => void waiting.set(name, "over"),
    setExecution: (arn, status) => void executions.set(arn, status),
    throttle: (calls) => void (throttled = calls),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
