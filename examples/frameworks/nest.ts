/**
 * NestJS: a provider whose method is locked, an interceptor for what happens once per `Idempotency-Key`, and an
 * exception filter that answers refusals. Nest's decorators are of the older kind (`experimentalDecorators`), in which
 * `@locked` is not one: `locked(options, fn)` does the same to a function.
 */
import type { ArgumentsHost, ExceptionFilter, NestInterceptor } from "@nestjs/common";
import { Catch, Injectable } from "@nestjs/common";
import { lastValueFrom, of } from "rxjs";
import type { LockClient } from "../../lib/index.js";
import { idempotencyKeyOf, key, locked, LockError } from "../../lib/index.js";
import type { Orders } from "./orders.js";
import { refusalOf } from "./refusal.js";

/** Provided with `useFactory`, or with `@Inject(LOCKS)` before `locks`. `locked` finds the client in the property `locks`. */
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

/** `@UseInterceptors(idempotent(locks))` on a method: it runs once per key, and everybody gets what it returned. */
export function idempotent(locks: LockClient): NestInterceptor {
  return {
    async intercept(context, next) {
      const http = context.switchToHttp();
      const { headers, body } = http.getRequest<{ headers: Record<string, string>; body: unknown }>();
      const run = () => lastValueFrom(next.handle());
      // Where callers are known, put who it is before: key("orders", customer, idempotencyKeyOf(…)).
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

/** Of Express, which Nest runs on unless told otherwise. */
interface RefusalResponse {
  status(status: number): this;
  set(headers: object): this;
  json(body: object): void;
}
