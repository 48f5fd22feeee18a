/** The programs of the order service: its scene, run as a reader runs it, and its stack, whose code loads and answers. */
import { Annotations, Match } from "aws-cdk-lib/assertions";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, inject, it } from "vitest";
import { OrdersStack } from "../../examples/orders/stack.js";
import { newApp } from "../infra/synthesize.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT } from "../tidy/tree.js";

it("the scene shows one order, and one of three who gets it; nothing of its own stays behind", async () => {
  const proxy = await startFaultProxy(inject("engineEndpoint"));
  const env = { ...process.env, DYNAMODB_ENDPOINT: proxy.endpoint };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--import", "tsx", "examples/orders/scene.ts"], {
    cwd: ROOT,
    env,
  });
  expect(stderr).toBe("");
  expect(stdout).toMatch(
    /^the form is sent three times: 1 order, 8 cameras left\npaid: PAID\nrefund: ASKED\n(?:\w+: (?:200|409) .*\n){3}it is /,
  );
  expect(stdout).toMatch(/it is (?:CANCELLED|REFUNDED); moved 9800, -9800; (?:pickups 0; cameras 10|pickups 1; cameras 8)\n$/);
  expect(proxy.ledger.requests).toMatchObject({ CreateTable: 2, DeleteTable: 2 });
  await proxy.close();
});

it("the stack is made without a warning, of code that loads where there is no node_modules, and answers", () => {
  const app = newApp();
  const urls = { issuer: "https://issuer.example", providerUrl: "https://provider.example", carrierUrl: "https://carrier.example" };
  const stack = new OrdersStack(app, "orders", { ...urls, audience: "orders" });
  const { directory } = app.synth();
  expect(Annotations.fromStack(stack).findWarning("*", Match.anyValue())).toEqual([]);
  expect(Annotations.fromStack(stack).findError("*", Match.anyValue())).toEqual([]);
  const codes = readdirSync(directory)
    .map((asset) => join(directory, asset, "index.mjs"))
    .filter((file) => existsSync(file) && /\bas buyer\b/.test(readFileSync(file, "utf8")));
  const program = `
    const [code, event] = process.argv.slice(1).map((text) => JSON.parse(text));
    const { buyer, seller } = await import(code);
    const told = await Promise.all([buyer, seller].map((handler) => handler(event, { getRemainingTimeInMillis: () => 5000 })));
    console.log(told.map(({ statusCode }) => statusCode).join(" "));`;
  const env = {
    ...{ AWS_REGION: "us-east-1", HOLDFAST_URL: "https://locks.example", HOLDFAST_TABLE: "locks", ORDERS_TABLE: "orders" },
    ...{ PROVIDER_URL: urls.providerUrl, CARRIER_URL: urls.carrierUrl },
  };
  expect(codes).toHaveLength(1);
  const event = { routeKey: "GET /orders", headers: {}, requestContext: {} };
  const args = ["--input-type=module", "-e", program, JSON.stringify(pathToFileURL(codes[0]!).href), JSON.stringify(event)];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: directory, env, encoding: "utf8" });
  expect(stdout, stderr).toBe("401 404\n"); // Nobody is signed in, and it is no route of the sellers' function.
});
