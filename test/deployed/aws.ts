/** Calls to AWS's APIs, signed by `holdfast/sigv4`, as far as the run makes them: no package of AWS's is needed. */
import { expect, inject, vi } from "vitest";
import { type Credentials, sigv4 } from "../../lib/sigv4.js";
import { ACCOUNT, REGION, ROOT } from "./emulator.js";

/** The services with AWS's JSON protocol: the name in the signature, and the prefix of an operation. */
const JSON_SERVICES = {
  dynamodb: "DynamoDB_20120810",
  logs: "Logs_20140328",
  monitoring: "GraniteServiceVersion20100801",
  sqs: "AmazonSQS",
  states: "AWSStepFunctions",
  cognito: "AWSCognitoIdentityProviderService",
} as const;
const SIGNED_AS: Readonly<Record<string, string>> = { cognito: "cognito-idp" };
/** The versions of the services with AWS's query protocol. */
const QUERY_SERVICES = { iam: "2010-05-08", sts: "2011-06-15", cloudformation: "2010-05-15" } as const;

/** An error of AWS, with its name. */
export class AwsError extends Error {
  constructor(
    override readonly name: string,
    readonly status: number,
    text: string,
  ) {
    super(`${name}: ${text}`);
  }
}

interface Message {
  readonly service: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes are not signed. */
  readonly body?: string | Buffer;
  /** @default {@link REGION} */
  readonly region?: string;
}

/** The number of times that an internal error is tried again, as the clients of AWS do. The emulator has some under load. */
const RETRIES = 3;

async function send(message: Message, credentials: Credentials): Promise<string> {
  for (let left = RETRIES; ; left--) {
    try {
      return await sendOnce(message, credentials);
    } catch (error) {
      if (left === 0 || !(error instanceof AwsError) || error.status < 500) throw error;
    }
  }
}

async function sendOnce(
  { service, method = "POST", path = "/", headers, body, region = REGION }: Message,
  credentials: Credentials,
): Promise<string> {
  const url = inject("endpoint") + path;
  const sign = sigv4({ region, service, credentials });
  const signed = await sign({ method, url, headers, ...(typeof body === "string" && { body }) });
  const response = await fetch(url, { method, headers: { ...headers, ...signed }, ...(body !== undefined && { body: body as BodyInit }) });
  const text = await response.text();
  if (response.ok) return text;
  const name = response.headers.get("x-amzn-errortype") ?? /"__type": ?"([^"]+)"|<Code>([^<]+)/.exec(text)?.slice(1).find(Boolean);
  throw new AwsError((name ?? "").replace(/^.*#|:.*$/g, ""), response.status, text);
}

/** Calls an operation of a service with the JSON protocol. @throws AwsError */
export async function call<T = Readonly<Record<string, never>>>(
  service: keyof typeof JSON_SERVICES,
  operation: string,
  request: object,
  credentials: Credentials = ROOT,
): Promise<T> {
  const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": `${JSON_SERVICES[service]}.${operation}` };
  const text = await send({ service: SIGNED_AS[service] ?? service, headers, body: JSON.stringify(request) }, credentials);
  return JSON.parse(text || "{}") as T;
}

/** Calls an operation of a service with the query protocol. Returns its XML. @throws AwsError */
export function query(
  service: keyof typeof QUERY_SERVICES,
  Action: string,
  parameters: Readonly<Record<string, string>>,
  region = REGION,
): Promise<string> {
  const body = new URLSearchParams({ Action, Version: QUERY_SERVICES[service], ...parameters }).toString();
  return send({ service, headers: { "content-type": "application/x-www-form-urlencoded" }, body, region }, ROOT);
}

/** Creates or updates a stack of the template without the CDK, and waits for it. Returns its outputs. */
export async function putStack(
  action: "CreateStack" | "UpdateStack",
  { name: StackName, template: TemplateBody, parameters, region }: StackToPut,
): Promise<Readonly<Record<string, string>>> {
  const numbered = Object.entries(parameters).flatMap(([name, value], at) => [
    [`Parameters.member.${at + 1}.ParameterKey`, name],
    [`Parameters.member.${at + 1}.ParameterValue`, value],
  ]);
  const all = { StackName, TemplateBody, "Capabilities.member.1": "CAPABILITY_IAM", ...Object.fromEntries(numbered) };
  await query("cloudformation", action, all, region);
  const describeStack = () => query("cloudformation", "DescribeStacks", { StackName }, region);
  await vi.waitUntil(async () => !(await describeStack()).includes("_IN_PROGRESS"), { timeout: 60_000, interval: 200 });
  const xml = await describeStack();
  expect(inXml(xml, "StackStatus"), xml).toBe(action === "CreateStack" ? "CREATE_COMPLETE" : "UPDATE_COMPLETE");
  return Object.fromEntries(
    xml
      .split("<OutputKey>")
      .slice(1)
      .map((member) => [member.split("<")[0]!, inXml(member, "OutputValue")]),
  );
}

interface StackToPut {
  readonly name: string;
  readonly template: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly region?: string;
}

/** Calls Lambda. @throws AwsError */
export async function lambda<T>(method: string, path: string, request?: object, credentials: Credentials = ROOT): Promise<T> {
  const body = request && JSON.stringify(request);
  const message = { service: "lambda", method, path, headers: { "content-type": "application/json" } };
  const text = await send({ ...message, ...(body !== undefined && { body }) }, credentials);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Makes a bucket in a Region, with these files. */
export async function upload(bucket: string, files: Readonly<Record<string, Buffer>>, region = REGION): Promise<void> {
  const headers = { "x-amz-content-sha256": "UNSIGNED-PAYLOAD" };
  const at = (path: string, body?: Buffer) => send({ service: "s3", method: "PUT", path, headers, region, ...(body && { body }) }, ROOT);
  const place = `<CreateBucketConfiguration><LocationConstraint>${region}</LocationConstraint></CreateBucketConfiguration>`;
  await at(`/${bucket}`, region === REGION ? undefined : Buffer.from(place));
  for (const [name, body] of Object.entries(files)) await at(`/${bucket}/${name}`, body);
}

/** The text of an element of XML. */
export function inXml(xml: string, name: string): string {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? "";
}

/** The name of a resource of a stack whose logical id begins so, before the 8 digits of the CDK; "" if there is none. */
export async function resourceOf(StackName: string, beginning: string): Promise<string> {
  const xml = await query("cloudformation", "DescribeStackResources", { StackName });
  const id = new RegExp(`^${beginning}[0-9A-F]{8}$`);
  const found = xml.split("<member>").find((member) => id.test(inXml(member, "LogicalResourceId")));
  return inXml(found ?? "", "PhysicalResourceId");
}

/** The name of the function behind the function URLs of a stack. The construct doesn't show it. */
export const urlFunctionOf = (stack: string): Promise<string> => resourceOf(stack, "LocksUrlFunction");

export async function assume(role: string, RoleSessionName = "one"): Promise<Credentials> {
  const xml = await query("sts", "AssumeRole", { RoleArn: `arn:aws:iam::${ACCOUNT}:role/${role}`, RoleSessionName });
  const [accessKeyId, secretAccessKey, sessionToken] = ["AccessKeyId", "SecretAccessKey", "SessionToken"].map((name) => inXml(xml, name));
  return { accessKeyId: accessKeyId!, secretAccessKey: secretAccessKey!, sessionToken: sessionToken! };
}

/** Invokes a function, perhaps by a qualifier (`NAME:ALIAS`), and waits for what it returns. @throws Error with the function's own */
export async function invoke<T>(name: string, event: object, credentials?: Credentials): Promise<T> {
  const path = `/2015-03-31/functions/${encodeURIComponent(name)}/invocations`;
  const answer = await lambda<T & { readonly errorMessage?: string }>("POST", path, event, credentials);
  if (answer.errorMessage !== undefined) throw new Error(answer.errorMessage);
  return answer;
}
