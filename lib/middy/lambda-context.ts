/**
 * The context of an invocation as Lambda's types have it, member by member, so that what Middy makes of ours and of
 * theirs fits. Written out here, since a package that only some have would break the types of all others.
 */

/** What Lambda hands to a function beside its event: the `Context` of `@types/aws-lambda`, which need not be there. */
export interface LambdaContext {
  callbackWaitsForEmptyEventLoop: boolean;
  functionName: string;
  functionVersion: string;
  invokedFunctionArn: string;
  memoryLimitInMB: string;
  awsRequestId: string;
  logGroupName: string;
  logStreamName: string;
  identity?: { cognitoIdentityId: string; cognitoIdentityPoolId: string } | undefined;
  clientContext?:
    | {
        client: { installationId: string; appTitle: string; appVersionName: string; appVersionCode: string; appPackageName: string };
        custom?: unknown;
        env: { platformVersion: string; platform: string; make: string; model: string; locale: string };
      }
    | undefined;
  tenantId?: string | undefined;
  /** What is left until the function is cut off, in ms. */
  getRemainingTimeInMillis(): number;
  /** @deprecated Return a promise. */
  done(error?: Error, result?: unknown): void;
  /** @deprecated Return a promise. */
  fail(error: Error | string): void;
  /** @deprecated Return a promise. */
  succeed(message: unknown, object?: unknown): void;
}
