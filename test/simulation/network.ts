/**
 * The way from a client to the service and back: the SDK's real HTTP transport on one side, the real
 * handler on the other, and between them requests that are lost, late and delivered twice.
 */
import type { HttpEvent, HttpResult } from "../../lambda/http.js";
import { PATHS } from "../../lambda/routes.js";
import type { FaultProfile } from "./faults.js";
import type { Delivered } from "./checker.js";
import type { Random } from "./random.js";
import type { Process, World } from "./world.js";

/** One handler: a process with a clock of its own. */
export interface HandlerProcess {
  readonly process: Process;
  readonly handle: (event: HttpEvent) => Promise<HttpResult>;
}

/** The network in front of these handlers. */
export class Network {
  requests = 0;
  duplicatesDelivered = 0;
  /** Told of every request as it reaches a handler; what it returns is told the answer. */
  onDelivered: (request: Delivered) => (result: HttpResult) => void = () => () => undefined;

  constructor(
    private readonly world: World,
    private readonly random: Random,
    private readonly faultProfile: FaultProfile,
    private readonly gateways: readonly Process[],
    private readonly handlers: readonly HandlerProcess[],
  ) {}

  /** `fetch` as `client` would use it, authenticated as `principal`. */
  fetchFor(client: Process, principal: string): typeof fetch {
    return ((url: string, init: { method: string; body?: string; headers: Record<string, string> }) =>
      new Promise((resolve) => {
        // To look whether a dead client believes may make it notice its loss and ask again: in fair weather it must not renew.
        if (client.isDead && !this.faultProfile.isFoul) return;
        this.requests++;
        const sentInTrouble = this.faultProfile.isFoul;
        const send = (delayMs: number, reply: (result: HttpResult) => void, isDuplicate: boolean): void => {
          this.world.in(delayMs, () => {
            // What was under way when the network healed is gone: liveness is judged without its ghosts.
            if (sentInTrouble === this.faultProfile.isFoul) void this.#deliver(url, init, principal, isDuplicate).then(reply);
          });
        };
        if (!this.#strikes(this.faultProfile.mix.loseRequest)) {
          send(this.#legMs(), (result) => this.#reply(client, result, resolve), false);
        }
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
    const event = eventOf(path, init, principal, this.random.pick(this.gateways).wallMs());
    const result = await this.random.pick(this.handlers).handle(event);
    answered(result);
    return result;
  }

  #reply(client: Process, result: HttpResult, resolve: (response: unknown) => void): void {
    if (this.#strikes(this.faultProfile.mix.loseReply)) return;
    const headers = new Map(Object.entries(result.headers ?? {}).map(([name, value]) => [name, String(value)]));
    const response = {
      status: result.statusCode,
      headers: { get: (name: string) => headers.get(name) ?? null },
      text: () => Promise.resolve(result.body ?? ""),
    };
    this.world.in(this.#legMs(), () => client.deliver(() => resolve(response)));
  }

  #strikes(probability: number): boolean {
    return this.faultProfile.isFoul && this.random.chance(probability);
  }

  /** One way: mostly quick, sometimes slower than any timeout. */
  #legMs(): number {
    return this.faultProfile.isFoul && this.random.chance(0.15)
      ? this.random.between(1, this.faultProfile.mix.slowMs)
      : this.random.between(1, 20);
  }
}

const TEMPLATES = PATHS.map((template) => ({ template, parts: template.split("/") }));

/** The parameter that this part of a template stands for, if it is one. */
function nameOf(part: string): string | undefined {
  return part.startsWith("{") ? part.slice(1, -1) : undefined;
}

/** The event that the gateway makes of a request. */
function eventOf(
  path: string,
  { method, body, headers }: { method: string; body?: string; headers: Record<string, string> },
  principal: string,
  timeEpoch: number,
): HttpEvent {
  const parts = path.split("/");
  const found = TEMPLATES.find(
    (one) => one.parts.length === parts.length && one.parts.every((part, at) => part === parts[at] || nameOf(part) !== undefined),
  );
  const named = (found?.parts ?? []).map((part, at) => [nameOf(part), parts[at]] as const);
  const parameters = Object.fromEntries(named.filter(([name]) => name !== undefined));
  return {
    version: "2.0",
    routeKey: found ? `${method} ${found.template}` : "$default",
    headers,
    pathParameters: parameters,
    ...(body !== undefined && { body }),
    isBase64Encoded: false,
    requestContext: { requestId: "simulated", timeEpoch, authorizer: { iam: { accountId: "simulation", userId: principal } } },
  } as unknown as HttpEvent;
}
