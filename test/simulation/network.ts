/**
 * The network between a client and the service: the SDK's real HTTP transport on one side, the real handler on the other. Requests between
 * them may be lost, delayed or delivered twice.
 */
import type { HttpEvent, HttpResult } from "../../lambda/http.js";
import { PATHS } from "../../lambda/routes.js";
import type { FaultProfile } from "./faults.js";
import type { Delivered } from "./oracles/checker.js";
import type { Random } from "./random.js";
import type { Process, World } from "./world.js";

/** One handler: a process with its own clock. */
export interface HandlerProcess {
  readonly process: Process;
  readonly handle: (event: HttpEvent) => Promise<HttpResult>;
}

/** The network in front of these handlers. */
export class Network {
  requests = 0;
  duplicatesDelivered = 0;
  /** Called for every request that reaches a handler. It returns a function that takes the answer. */
  onDelivered: (request: Delivered) => (result: HttpResult) => void = () => () => undefined;

  constructor(
    private readonly world: World,
    private readonly random: Random,
    private readonly faultProfile: FaultProfile,
    private readonly gateways: readonly Process[],
    private readonly handlers: readonly HandlerProcess[],
  ) {}

  /** Returns the `fetch` of `client`, authenticated as `principal`. */
  fetchFor(client: Process, principal: string): typeof fetch {
    return ((url: string, init: { method: string; body?: string; headers: Record<string, string> }) =>
      new Promise((resolve) => {
        // Reading the lease deadline of a dead client may make the client notice its loss and ask again. Without faults it must not renew.
        if (client.isDead && !this.faultProfile.isFoul) return;
        this.requests++;
        const sentInTrouble = this.faultProfile.isFoul;
        const send = (delayMs: number, reply: (result: HttpResult) => void, isDuplicate: boolean): void => {
          this.world.in(delayMs, () => {
            // Requests that were in flight when the faults stopped are dropped, because liveness is checked without them.
            if (sentInTrouble === this.faultProfile.isFoul) void this.#deliver(url, init, principal, isDuplicate).then(reply);
          });
        };
        if (this.#strikes(this.faultProfile.mix.loseRequest)) this.world.tell?.(principal, `${shown(url, init)}: lost`);
        else send(this.#legMs(), (result) => this.#reply(client, result, resolve, () => shown(url, init)), false);
        if (this.#strikes(this.faultProfile.mix.duplicate)) {
          const lateMs = this.random.chance(0.5) ? this.random.between(0, this.faultProfile.mix.lateMs) : this.#legMs();
          send(lateMs, () => undefined, true);
        }
      })) as unknown as typeof fetch;
  }

  async #deliver(
    url: string,
    init: { method: string; body?: string; headers: Record<string, string> },
    principal: string,
    isDuplicate: boolean,
  ): Promise<HttpResult> {
    const path = new URL(url).pathname;
    if (isDuplicate) this.duplicatesDelivered++;
    const { method, body, headers } = init;
    const answered = this.onDelivered({ method, path, body, prefer: headers["prefer"], isDuplicate, atMs: this.world.nowMs });
    const gateway = this.random.pick(this.gateways);
    const event = eventOf(path, init, principal, gateway.wallMs());
    const { process, handle } = this.random.pick(this.handlers);
    this.world.tell?.(
      principal,
      `${shown(url, init)}${isDuplicate ? ", a duplicate," : ""} reaches ${process.name}, whose clock is ${errorOf(process)} (the gateway's ${errorOf(gateway)})`,
    );
    const result = await handle(event);
    this.world.tell?.(process.name, `${shown(url, init)}: ${result.statusCode} ${summary(result)}`);
    answered(result);
    return result;
  }

  #reply(client: Process, result: HttpResult, resolve: (response: unknown) => void, request: () => string): void {
    if (this.#strikes(this.faultProfile.mix.loseReply)) {
      this.world.tell?.(client.name, `${request()}: the answer is lost`);
      return;
    }
    this.world.in(this.#legMs(), () => client.deliver(() => resolve(responseOf(result))));
  }

  #strikes(probability: number): boolean {
    return this.faultProfile.isFoul && this.random.chance(probability);
  }

  /** Returns the latency of one direction: mostly low, sometimes above any timeout. */
  #legMs(): number {
    return this.faultProfile.isFoul && this.random.chance(0.15)
      ? this.random.between(1, this.faultProfile.mix.slowMs)
      : this.random.between(1, 20);
  }
}

/** The request as a line of a timeline has it. */
function shown(url: string, { method }: { readonly method: string }): string {
  return `${method} ${new URL(url).pathname.replace("/v1/", "")}`;
}

function errorOf({ wallErrorMs }: Process): string {
  return wallErrorMs === 0 ? "right" : `${Math.round(Math.abs(wallErrorMs))} ms ${wallErrorMs > 0 ? "fast" : "slow"}`;
}

/** The parts of an answer that tell its meaning. */
function summary({ headers, body }: HttpResult): string {
  const told = JSON.parse(body || "{}") as Readonly<Record<string, string | number | undefined>>;
  const parts = ["code", "state", "fencingToken", "retryAfterMs"].map((name) => (told[name] === undefined ? "" : `${name} ${told[name]}`));
  return [...parts, headers?.["lease-state"] ?? ""].filter(Boolean).join(", ");
}

/** Returns the answer as `fetch` does. */
export function responseOf({
  statusCode,
  headers,
  body,
}: HttpResult): Pick<Response, "status" | "text"> & { readonly headers: Pick<Headers, "get"> } {
  const all = new Map(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]));
  return { status: statusCode, headers: { get: (name) => all.get(name) ?? null }, text: () => Promise.resolve(body ?? "") };
}

/** The paths of the API. Each part of one is a text, or the name of a parameter. */
const TEMPLATES = PATHS.map((template) => ({
  template,
  parts: template.split("/").map((part) => (part.startsWith("{") ? { name: part.slice(1, -1) } : { text: part })),
}));

/** Builds the event that the gateway makes of a request. */
export function eventOf(
  path: string,
  { method, body, headers }: { method: string; body?: string; headers: Record<string, string> },
  principal: string,
  timeEpoch: number,
): HttpEvent {
  const parts = path.split("/");
  const found = TEMPLATES.find(
    (one) => one.parts.length === parts.length && one.parts.every((part, at) => "name" in part || part.text === parts[at]),
  );
  const parameters: Record<string, string | undefined> = {};
  for (const [at, part] of (found?.parts ?? []).entries()) if ("name" in part) parameters[part.name] = parts[at];
  return {
    version: "2.0",
    routeKey: found ? `${method} ${found.template}` : "$default",
    headers,
    pathParameters: parameters,
    ...(body !== undefined && { body }),
    isBase64Encoded: false,
    requestContext: {
      requestId: "simulated",
      timeEpoch,
      http: { method },
      authorizer: { iam: { accountId: "simulation", userId: principal } },
    },
  } as unknown as HttpEvent;
}
