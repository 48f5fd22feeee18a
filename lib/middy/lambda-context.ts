/**
 * The context of an invocation, member by member as in `@types/aws-lambda`, so that Middy's types fit both. It is written out here because
 * importing a package that isn't always installed would break the types of every other user.
 */

/** The context that Lambda passes to a function: the `Context` of `@types/aws-lambda`, without needing that package. */
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
  /** The time left until Lambda stops the function, in ms. */
  getRemainingTimeInMillis(): number;
  /** @deprecated Return a promise. */
  done(error?: Error, result?: unknown): void;
  /** @deprecated Return a promise. */
  fail(error: Error | string): void;
  /** @deprecated Return a promise. */
  succeed(message: unknown, object?: unknown): void;
}
