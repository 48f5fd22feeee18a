/**
 * The second door to the service: function URLs, which have no charge of their own (decision 063). One more function has the same code. Each
 * grant has an alias of that function, with a URL of its own. IAM decides who may call the URL; the alias's name says which keys its callers
 * may use, and the function refuses everything else (lambda/function-url.ts).
 *
 * The function itself is not public: the CDK's `grantInvoke` of it would let a client invoke it with an event of its own making, and be
 * any caller.
 */
import { type Duration, Annotations, Fn, Stack, Token } from "aws-cdk-lib";
import type { IMetric } from "aws-cdk-lib/aws-cloudwatch";
import { Alias, type Function as LambdaFunction, FunctionUrlAuthType } from "aws-cdk-lib/aws-lambda";
import type { LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { ALIAS_MAX_CHARS, aliasOf } from "../lambda/function-url.js";
import { type Right, checkPrefix } from "./access.js";
import { type FunctionOptions, createServiceFunction } from "./functions.js";

export interface FunctionUrlOptions {
  /**
   * The reserved concurrency of their function. It is the only limit of their requests: Lambda serves at most ten times as many a second, and
   * answers the others with 429. 0 closes the door. @default none, with a warning: they may use all of the account's concurrency
   */
  readonly reservedConcurrency?: number | undefined;
}

/** A function URL for the keys of one grant, and the permission to call it. */
export interface FunctionUrl {
  readonly url: string;
  readonly rights: readonly Right[];
}

/**
 * The Regions that have no function URLs.
 * https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html, read 2026-11-27
 */
const REGIONS_WITHOUT = [
  ...["ap-east-2", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7"],
  ...["ca-west-1", "eu-central-2", "eu-south-2", "il-central-1", "me-central-1"],
];

/** The function behind the function URLs, with the aliases of its grants, each made for the first grant that needs it. */
export class FunctionUrls {
  readonly #scope: Construct;
  readonly #function: LambdaFunction;
  readonly #urls = new Map<string, FunctionUrl>();

  constructor(scope: Construct, log: LogGroup, options: FunctionOptions, { reservedConcurrency }: FunctionUrlOptions) {
    this.#scope = scope;
    this.#function = createServiceFunction(scope, log, options, {
      name: "url",
      id: "UrlFunction",
      description: "holdfast: what clients call by function URLs",
      // No Query: even if the function's rule failed, it could not list the keys of others.
      actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"],
      environment: {
        HOLDFAST_MOUNT: "function-url",
        // Heartbeats have no executions of their own here, so no request may occupy one while it waits.
        HOLDFAST_SERVER_WAIT_MS: "0",
        ...(options.hasAgent && { HOLDFAST_WAKE: "1" }),
      },
      reserved: reservedConcurrency,
    });
    if (reservedConcurrency === undefined) warn(scope, "reservedConcurrency", NO_LIMIT);
    const { region } = Stack.of(scope);
    if (!Token.isUnresolved(region) && REGIONS_WITHOUT.includes(region))
      warn(scope, "region", `${region} has no function URLs: ${USE_THE_API}`);
  }

  /**
   * Returns the function URL for keys with this prefix, or for all keys.
   * @throws Error if the prefix is invalid for keys, or too long for the name of an alias.
   */
  at(prefix?: string): FunctionUrl {
    if (prefix !== undefined) checkPrefix(prefix);
    const aliasName = aliasOf({ prefix });
    if (aliasName.length > ALIAS_MAX_CHARS) {
      const rule = `its alias would have ${aliasName.length} characters, and Lambda allows ${ALIAS_MAX_CHARS}`;
      throw new Error(`prefix: ${JSON.stringify(prefix)} is too long for a function URL: ${rule}`);
    }
    const url = this.#urls.get(aliasName) ?? this.#create(aliasName);
    this.#urls.set(aliasName, url);
    return url;
  }

  /** Returns a metric of the function, over all its aliases. */
  metric(name: string, options: { readonly statistic: string; readonly period?: Duration }): IMetric {
    return this.#function.metric(name, options);
  }

  #create(aliasName: string): FunctionUrl {
    // `$LATEST`, so that each deployment reaches every alias, and none stays behind on a version with a fault.
    const alias = new Alias(this.#scope, `UrlAlias-${aliasName}`, { aliasName, version: this.#function.latestVersion });
    const { url } = alias.addFunctionUrl({ authType: FunctionUrlAuthType.AWS_IAM });
    const right = (action: string, conditions: Right["conditions"] & object): Right => ({
      actions: [action],
      resourceArns: [alias.functionArn],
      conditions,
    });
    return {
      // `https://HOST/`, without the slash at its end.
      url: Fn.join("//", [Fn.select(0, Fn.split("/", url)), Fn.select(2, Fn.split("/", url))]),
      // AWS asks for both actions since October 2025: https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
      rights: [
        right("lambda:InvokeFunctionUrl", { StringEquals: { "lambda:FunctionUrlAuthType": "AWS_IAM" } }),
        // Without this condition a client could invoke the function directly, with an event that names any caller.
        right("lambda:InvokeFunction", { Bool: { "lambda:InvokedViaFunctionUrl": "true" } }),
      ],
    };
  }
}

const NO_LIMIT =
  "functionUrl: without reservedConcurrency, callers of the function URLs have no limit but the account's concurrency, which the other " +
  "functions of the account share";
const USE_THE_API = 'grant with via: "api", or deploy to another Region';

function warn(scope: Construct, about: string, message: string): void {
  Annotations.of(scope).addWarningV2(`holdfast:functionUrl:${about}`, message);
}
