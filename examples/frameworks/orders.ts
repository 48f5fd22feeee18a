/**
 * The application that every framework here serves: `POST /orders`, which an impatient user may send twice, and `POST
 * /orders/{id}/ship`, which two callers may send at once. Nothing here knows about locks.
 */

export interface Order {
  readonly id: number;
  readonly product: string;
}

/** The application's orders. */
export interface Orders {
  create(order: Omit<Order, "id">): Promise<Order>;
  ship(id: string): Promise<{ readonly shipped: string }>;
}

export function ordersInMemory(): Orders {
  const orders: Order[] = [];
  return {
    async create({ product }) {
      const order = { id: orders.length + 1, product };
      orders.push(order);
      return order;
    },
    ship: async (id) => ({ shipped: id }),
  };
}
