/**
 * Serves the Express example on a port, with its locks behind the service that HOLDFAST_URL names. The README has the
 * command and three requests. PORT is 3000 by default; 0 takes any free port.
 */
import type { AddressInfo } from "node:net";
import { createLockClient } from "../../lib/index.js";
import { ordersApp } from "./express.js";
import { ordersInMemory } from "./orders.js";

const port = Number(process.env["PORT"] || 3000);
const server = ordersApp(createLockClient({ owner: "orders" }), ordersInMemory()).listen(port, "127.0.0.1", (error?: Error) => {
  if (error) console.error(error.message);
  else console.log(`orders at http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
