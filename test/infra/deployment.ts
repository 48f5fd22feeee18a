/**
 * A synthesized stack, run on localhost: the functions' code from its assets, each in its own process with its
 * environment from the template, behind the local gateway. Each route invokes its function in the template.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { startGateway } from "../../infra/local/gateway.js";
import { freshTable } from "../support/engine.js";
import type { TokenCheck } from "./token-check.js";

/** A running stack. */
export interface Deployment {
  readonly url: string;
  /** The number of requests that each function answered, by its logical id. */
  readonly answered: ReadonlyMap<string, number>;
  /** The functions' log, line by line. */
  readonly log: readonly string[];
  /** The patterns of the log that the template counts, by the name of the metric. */
  readonly counted: ReadonlyMap<string, string>;
  /** Invokes the only function whose logical id begins like this, as a schedule does. */
  invoke(id: string, event: object): Promise<unknown>;
  close(): Promise<void>;
}

/** A template, as far as it is run here. */
export interface Template {
  // The properties depend on the resource.
  readonly Resources: Readonly<Record<string, { readonly Type: string; readonly Properties: any }>>; // eslint-disable-line @typescript-eslint/no-explicit-any -- a test reads what was made
}

/** Returns what AWS would fill in for functions on a new table of the engine. */
export async function engineVariables(): Promise<Readonly<Record<string, string>>> {
  const { tableName, endpoint } = await freshTable();
  return {
    "AWS::DynamoDB::Table": tableName,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  };
}

/** The part of Lambda's runtime that is needed here. */
const RUNTIME = `
  const { [process.argv[2]]: handler } = await import(process.argv[1]);
  process.on("message", async ({ id, event }) => process.send({ id, result: await handler(event) }));
  process.on("disconnect", () => process.exit());
  process.send({ ready: true });`;

/**
 * Runs the only stack in `assembly`, a directory that `cdk synth` made, with `variables` instead of AWS's values. `checkToken` stands for
 * the gateway's check of tokens, on routes that ask for one.
 */
export async function deployHere(
  assembly: string,
  variables: Readonly<Record<string, string>>,
  checkToken?: TokenCheck,
): Promise<Deployment> {
  const [name] = readdirSync(assembly).filter((file) => file.endsWith(".template.json"));
  const template = JSON.parse(readFileSync(join(assembly, name!), "utf8")) as Template;
  const assets = JSON.parse(readFileSync(join(assembly, name!.replace("template", "assets")), "utf8")) as {
    files: Record<string, { source: { path: string } }>;
  };
  return deployTemplate(template, variables, (key) => join(assembly, assets.files[key.replace(/\.zip$/, "")]!.source.path), checkToken);
}

/** Returns the patterns of the log that a template counts, by the name of the metric. */
function countedIn(Resources: Template["Resources"]): ReadonlyMap<string, string> {
  const filters = Object.values(Resources).filter(({ Type }) => Type === "AWS::Logs::MetricFilter");
  return new Map(
    filters.map(({ Properties }) => [Properties.MetricTransformations[0].MetricName as string, Properties.FilterPattern as string]),
  );
}

/** Runs the stack of a template. `codeAt` returns the directory with the code of this key. */
export async function deployTemplate(
  { Resources }: Template,
  variables: Readonly<Record<string, string>>,
  codeAt: (key: string) => string,
  checkToken?: TokenCheck,
): Promise<Deployment> {
  const log: string[] = [];
  const answered = new Map<string, number>();
  const functions = new Map<string, LocalFunction>();
  const routes = routesIn(Resources);
  const gateway = await startGateway({
    port: 0,
    async handler(asked) {
      const event = routedBeside(asked, routes);
      const route = routes.get(event.routeKey);
      if (!route) throw new Error(`The stack has no route ${event.routeKey}`);
      if (route.type === "JWT") {
        const checked = checkToken!(event.headers["authorization"], route.scopes);
        if ("statusCode" in checked) return checked;
        Object.assign(event.requestContext, { authorizer: { jwt: checked } });
      } else if (route.type === "NONE") Object.assign(event.requestContext, { authorizer: undefined });
      answered.set(route.functionId, (answered.get(route.functionId) ?? 0) + 1);
      return functions.get(route.functionId)!.invoke(event);
    },
    onError: (error) => void log.push(String(error)),
  });
  /** The only attribute that is asked for is the URL of the API. */
  const valueOf = (value: unknown): string => {
    if (typeof value === "string") return value;
    const { Ref: id } = value as { readonly Ref?: string };
    return id === undefined ? gateway.url : variables[Resources[id]!.Type]!;
  };
  for (const [id, { Type, Properties }] of Object.entries(Resources)) {
    if (Type !== "AWS::Lambda::Function") continue;
    const directory = codeAt(Properties.Code.S3Key as string);
    const [module, name] = (Properties.Handler as string).split(".") as [string, string];
    const code = [pathToFileURL(join(directory, `${module}.mjs`)).href, name] as const;
    const given = Object.entries((Properties.Environment?.Variables ?? {}) as Record<string, unknown>);
    const env = Object.fromEntries(given.map(([variable, value]) => [variable, valueOf(value)]));
    functions.set(id, await startFunction(code, { ...variables, ...env }, directory, (line) => void log.push(line)));
  }
  return {
    url: gateway.url,
    answered,
    log,
    counted: countedIn(Resources),
    invoke: (id, event) => [...functions].find(([other]) => other.startsWith(id))![1].invoke(event),
    async close() {
      await gateway.close();
      await Promise.all([...functions.values()].map((one) => one.stop()));
    },
  };
}

interface Route {
  readonly functionId: string;
  /** `AWS_IAM`, `JWT` or `NONE`. */
  readonly type: string;
  readonly scopes: readonly string[];
}

/** Returns the stack's routes by their keys. */
function routesIn(Resources: Template["Resources"]): ReadonlyMap<string, Route> {
  const routes = new Map<string, Route>();
  for (const { Type, Properties } of Object.values(Resources)) {
    if (Type !== "AWS::ApiGatewayV2::Route") continue;
    const integrationId = (Properties.Target as { "Fn::Join": [string, [string, { Ref: string }]] })["Fn::Join"][1][1].Ref;
    const { IntegrationUri } = Resources[integrationId]!.Properties as { IntegrationUri: { "Fn::GetAtt": [string, string] } };
    const { AuthorizationType: type, AuthorizationScopes: scopes = [] } = Properties;
    routes.set(Properties.RouteKey as string, { functionId: IntegrationUri["Fn::GetAtt"][0], type, scopes });
  }
  return routes;
}

/** Returns the event with a route that the API's list lacks: of the console's files, if the stack has it. */
function routedBeside(event: APIGatewayProxyEventV2, routes: ReadonlyMap<string, Route>): APIGatewayProxyEventV2 {
  const found = /^\/console(?:\/([^/]+))?$/.exec(event.rawPath);
  const file = found?.[1];
  const routeKey = `${event.requestContext.http.method} /console${file === undefined ? "" : "/{file}"}`;
  if (!found || !routes.has(routeKey)) return event;
  return { ...event, routeKey, ...(file !== undefined && { pathParameters: { file } }) };
}

interface LocalFunction {
  invoke(event: object): Promise<APIGatewayProxyStructuredResultV2>;
  stop(): Promise<void>;
}

async function startFunction(
  code: readonly [url: string, name: string],
  env: Readonly<Record<string, string>>,
  cwd: string,
  onLine: (line: string) => void,
): Promise<LocalFunction> {
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "-e", RUNTIME, ...code], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  for (const stream of [child.stdout!, child.stderr!]) {
    let unfinished = "";
    stream.setEncoding("utf8").on("data", (text: string) => {
      const lines = (unfinished + text).split("\n");
      unfinished = lines.pop() ?? "";
      lines.forEach(onLine);
    });
  }
  const asked = new Map<number, (result: APIGatewayProxyStructuredResultV2) => void>();
  let last = 0;
  const ended = once(child, "exit");
  const [{ ready }] = (await Promise.race([once(child, "message"), ended.then(() => [{}])])) as [{ ready?: true }];
  if (ready !== true) throw new Error("The function ended before it was ready");
  child.on("message", ({ id, result }: { id: number; result: APIGatewayProxyStructuredResultV2 }) => {
    asked.get(id)?.(result);
    asked.delete(id);
  });
  return {
    invoke: (event) =>
      new Promise((resolve) => {
        asked.set(++last, resolve);
        child.send({ id: last, event });
      }),
    async stop() {
      child.disconnect();
      await ended;
    },
  };
}
