/**
 * The HTTP API in front of the functions. Every route has an authorizer, because a lease belongs to its caller's identity. The authorizer
 * is the default, so new routes have it automatically. Only the console's files, which hold no data, are open (decision 029). There is no
 * CORS: no page of another origin is answered.
 */
import { RemovalPolicy, Stack } from "aws-cdk-lib";
import { AccessLogFormat } from "aws-cdk-lib/aws-apigateway";
import type { CfnStage, DomainMappingOptions, HttpRoute, IHttpRouteAuthorizer, ThrottleSettings } from "aws-cdk-lib/aws-apigatewayv2";
import { HttpApi, HttpMethod, HttpNoneAuthorizer, HttpStage, LogGroupLogDestination } from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer, HttpJwtAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { type RetentionDays, LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { Duty } from "../lib/contract/routes.js";
import { dutyOf, ROUTE_KEYS } from "../lambda/routes.js";
import { OPERATORS_ROUTE } from "../lambda/operators.js";
import { type Functions, acknowledge } from "./functions.js";

/** Options for callers that send a JSON Web Token instead of signing with IAM. */
export interface JwtOptions {
  /** The `iss` of the tokens, under which its keys are published. */
  readonly issuer: string;
  /** The accepted values of the token's `aud` (or `client_id`). */
  readonly audience: readonly string[];
  /** The accepted scopes on every route except the admin routes; a token needs one of them, or of `adminScopes`. @default none is required */
  readonly scopes?: readonly string[] | undefined;
  /** The accepted scopes for break, list and reset; a token needs one of them. @default ["locks:admin"] */
  readonly adminScopes?: readonly string[] | undefined;
  /**
   * The accepted scopes for looking at, breaking and resetting the keys of every tenant, under `/namespaces/NAME`; a token needs one of them.
   * It needs `tenant`. @default nobody may
   */
  readonly operatorScopes?: readonly string[] | undefined;
}

export interface ApiOptions {
  readonly functions: Functions;
  /** The function that serves the console's files, if the service has a console. */
  readonly page: IFunction | undefined;
  readonly jwt: JwtOptions | undefined;
  readonly throttle: Required<ThrottleSettings>;
  readonly acquireThrottle: Required<ThrottleSettings>;
  readonly domain: DomainMappingOptions | undefined;
  /** The key that encrypts the access log, if it is a customer's. */
  readonly logKey: IKey | undefined;
  readonly logRetention: RetentionDays;
}

/** The scope that a JWT needs for the admin routes. */
export const ADMIN_SCOPE = "locks:admin";

/**
 * The fields of the gateway's access log, the only record of heartbeats and of requests that the gateway refuses. Path and query are left
 * out because they contain keys and leaseIds, and the time because CloudWatch keeps it. Every byte is charged for every request.
 */
const ACCESS_LOG = {
  requestId: "$context.requestId",
  routeKey: "$context.routeKey",
  status: "$context.status",
  latencyMs: "$context.responseLatency",
  error: "$context.error.responseType",
};

/** The routes that grant new leases. They have their own throttle, which leaves the rest of the stage's rate to holders. */
export const ACQUIRING_ROUTES = ROUTE_KEYS.filter((routeKey) => routeKey.startsWith("PUT ") && dutyOf(routeKey) === "acquire");

/** The routes of the console's files. A page that the browser loads has no token, so they are open. */
export const PAGE_PATHS = ["/console", "/console/{file}"];
/**
 * The rate of the open routes: enough for people who load a page of four files, and too little to take the functions' concurrency or
 * much money.
 */
const PAGE_THROTTLE = { ThrottlingRateLimit: 20, ThrottlingBurstLimit: 40 };

/** The API, its only stage, and what adds the route of operators, whose callers may name any tenant: it is there only if somebody has the right. */
export interface CreatedApi {
  readonly api: HttpApi;
  readonly stage: HttpStage;
  readonly addOperators: () => void;
}

const OPERATORS_PATH = OPERATORS_ROUTE.replace(/^ANY /, "");

/** Creates the API with its routes and its only stage. */
export function createApi(scope: Construct, options: ApiOptions): CreatedApi {
  const { functions, page, jwt } = options;
  const { adminScopes = [ADMIN_SCOPE] } = jwt ?? {};
  const integrations = Object.fromEntries(
    // One permission for all routes: one per route would exceed a function's policy limit of 20 KB.
    Object.entries(functions).map(([duty, handler]) => [
      duty,
      new HttpLambdaIntegration(`${duty}Integration`, handler, { scopePermissionToRoute: false }),
    ]),
  ) as Record<Duty, HttpLambdaIntegration>;
  const api = new HttpApi(scope, "Api", {
    apiName: Stack.of(scope).stackName,
    description: "holdfast: lease locks over HTTP",
    createDefaultStage: false,
    defaultAuthorizer: authorizerFor(jwt),
    defaultIntegration: integrations.acquire,
    // The right to break a hold includes the right to use the locks, as with `grantAdmin`.
    ...(jwt?.scopes && { defaultAuthorizationScopes: [...new Set([...jwt.scopes, ...adminScopes])] }),
  });
  const routes = ROUTE_KEYS.flatMap((routeKey) => {
    const [method, path] = routeKey.split(" ") as [keyof typeof HttpMethod, string];
    const duty = dutyOf(routeKey);
    return api.addRoutes({
      path,
      methods: [HttpMethod[method]],
      integration: integrations[duty],
      ...(jwt && duty === "admin" && { authorizationScopes: [...adminScopes] }),
    });
  });
  // Those permissions are for `*/*/*`. The gateway calls for an unmatched path as `<stage>/$default`, and would answer 500.
  functions.acquire.addPermission("InvokeUnmatched", {
    principal: new ServicePrincipal("apigateway.amazonaws.com"),
    sourceArn: Stack.of(scope).formatArn({ service: "execute-api", resource: api.apiId, resourceName: "*/$default" }),
  });
  const pages = page ? addPage(api, page) : [];
  const addOperators = (scopes?: readonly string[]): void => {
    api.addRoutes({ path: OPERATORS_PATH, integration: integrations.admin, ...(scopes && { authorizationScopes: [...scopes] }) });
  };
  if (jwt?.operatorScopes) addOperators(jwt.operatorScopes);
  const stage = createStage(scope, api, options);
  // A stage can throttle only routes that already exist.
  const acquiring = ACQUIRING_ROUTES.flatMap((routeKey) => routes[ROUTE_KEYS.indexOf(routeKey)] ?? []);
  stage.node.addDependency(...acquiring, ...pages);
  return { api, stage, addOperators: () => addOperators() };
}

function addPage(api: HttpApi, page: IFunction): HttpRoute[] {
  const integration = new HttpLambdaIntegration("pageIntegration", page);
  const routes = PAGE_PATHS.flatMap((path) =>
    api.addRoutes({ path, methods: [HttpMethod.GET], integration, authorizer: new HttpNoneAuthorizer(), authorizationScopes: [] }),
  );
  for (const route of routes) acknowledge(route, "AwsSolutions::AwsSolutions-APIG4", OPEN_FILES);
  return routes;
}

const OPEN_FILES =
  "The console's files hold no data; a browser loads them without a token, and every look and change is an authorized route";

function authorizerFor(jwt: JwtOptions | undefined): IHttpRouteAuthorizer {
  return jwt ? new HttpJwtAuthorizer("Jwt", jwt.issuer, { jwtAudience: [...jwt.audience] }) : new HttpIamAuthorizer();
}

function createStage(scope: Construct, httpApi: HttpApi, options: ApiOptions): HttpStage {
  const { page, throttle, acquireThrottle, domain, logKey, logRetention } = options;
  const log = new LogGroup(scope, "AccessLog", {
    retention: logRetention,
    removalPolicy: RemovalPolicy.RETAIN,
    ...(logKey && { encryptionKey: logKey }),
  });
  const stage = new HttpStage(scope, "Stage", {
    httpApi,
    autoDeploy: true,
    throttle,
    accessLogSettings: {
      destination: new LogGroupLogDestination(log),
      format: AccessLogFormat.custom(JSON.stringify(ACCESS_LOG)),
    },
    ...(domain && { domainMapping: domain }),
  });
  const { rateLimit, burstLimit } = acquireThrottle;
  const acquiring = { ThrottlingRateLimit: rateLimit, ThrottlingBurstLimit: burstLimit };
  (stage.node.defaultChild as CfnStage).routeSettings = Object.fromEntries([
    ...ACQUIRING_ROUTES.map((routeKey) => [routeKey, acquiring] as const),
    ...(page ? PAGE_PATHS.map((path) => [`GET ${path}`, PAGE_THROTTLE] as const) : []),
  ]);
  return stage;
}
