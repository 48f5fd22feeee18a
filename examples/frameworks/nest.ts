/**
 * NestJS: a service whose method is locked, and a route that runs once per `Idempotency-Key`. The module makes the client
 * injectable and turns refusals into problems.
 */
import { type DynamicModule, Body, Controller, HttpCode, Inject, Injectable, Module, Param, Post } from "@nestjs/common";
import { type LockClient, key } from "../../lib/index.js";
import { type NodeRequest, HoldfastModule, Idempotent, Locked, LOCKS } from "../../lib/nest.js";
import { customerOf } from "./customer.js";
import type { Order, Orders } from "./orders.js";

/** The token of the application's orders. */
const ORDERS = Symbol("orders");

/** Shipping holds the order's lock. `@Locked` finds the client in the property `locks`. */
@Injectable()
export class OrdersService {
  constructor(
    @Inject(LOCKS) readonly locks: LockClient,
    @Inject(ORDERS) readonly orders: Orders,
  ) {}

  @Locked({ key: (id: string) => key("ORDER", id), waitMs: 2000 })
  async ship(id: string): Promise<object> {
    return this.orders.ship(id);
  }
}

/** Creating happens once per `Idempotency-Key` of a customer. */
@Controller("orders")
export class OrdersController {
  constructor(@Inject(OrdersService) readonly service: OrdersService) {}

  @Post()
  @Idempotent()
  create(@Body() order: Order): Promise<Order> {
    return this.service.orders.create(order);
  }

  @Post(":id/ship")
  @HttpCode(200)
  ship(@Param("id") id: string): Promise<object> {
    return this.service.ship(id);
  }
}

/** The application's root module. */
@Module({})
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- as every module of Nest
export class OrdersModule {
  static of(locks: LockClient, orders: Orders): DynamicModule {
    const caller = ({ headers }: NodeRequest): string => customerOf(headers.authorization);
    const providers = [OrdersService, { provide: ORDERS, useValue: orders }];
    return {
      module: OrdersModule,
      imports: [HoldfastModule.forRoot({ locks, service: "orders", caller })],
      controllers: [OrdersController],
      providers,
    };
  }
}
