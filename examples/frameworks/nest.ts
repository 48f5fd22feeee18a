/**
 * NestJS: a provider with a locked method, an interceptor for requests that run once per `Idempotency-Key`, and an
 * exception filter that answers refusals. Nest uses the older decorators (`experimentalDecorators`), which `@locked`
 * doesn't support. `locked(options, fn)` does the same to a function.
 */
import type { ArgumentsHost, ExceptionFilter, NestInterceptor } from "@nestjs/common";
import { Catch, Injectable } from "@nestjs/common";
import { lastValueFrom, of } from "rxjs";
import type { LockClient } from "../../lib/index.js";
import { idempotencyKeyOf, key, locked, LockError } from "../../lib/index.js";
import type { Orders } from "./orders.js";
import { refusalOf } from "./refusal.js";

/** Provide it with `useFactory`, or with `@Inject(LOCKS)` before `locks`. `locked` finds the client in the property `locks`. */
@Injectable()
export class OrdersService {
  constructor(
    readonly locks: LockClient,
    readonly orders: Orders,
  ) {}

  readonly pay = locked({ key: (id: string) => key("ORDER", id), waitMs: 2000 }, async function (this: OrdersService, id: string) {
    return this.orders.pay(id);
  });
}

/** `@UseInterceptors(idempotent(locks))` on a method: the method runs once per key, and every caller gets its result. */
export function idempotent(locks: LockClient): NestInterceptor {
  return {
    async intercept(context, next) {
      const http = context.switchToHttp();
      const { headers, body } = http.getRequest<{ headers: Record<string, string>; body: unknown }>();
      const run = () => lastValueFrom(next.handle());
      // With authenticated callers, put the caller into the key first: key("orders", customer, idempotencyKeyOf(…)).
      const { value, replayed } = await locks.runOnce(idempotencyKeyOf(headers), { payload: body, waitMs: 2000 }, run);
      if (replayed) http.getResponse<{ set(name: string, value: string): void }>().set("Idempotent-Replayed", "true");
      return of(value);
    },
  };
}

/** `app.useGlobalFilters(new RefusalFilter())` */
@Catch(LockError)
export class RefusalFilter implements ExceptionFilter<LockError> {
  catch(error: LockError, host: ArgumentsHost): void {
    const { status, headers, body } = refusalOf(error) ?? { status: 500, headers: {}, body: { error: "internal" } };
    host.switchToHttp().getResponse<RefusalResponse>().status(status).set(headers).json(body);
  }
}

/** The part of Express's response that is used. Nest runs on Express by default. */
interface RefusalResponse {
  status(status: number): this;
  set(headers: object): this;
  json(body: object): void;
}
