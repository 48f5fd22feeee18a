/** `holdfast dev -- COMMAND` in its own process: the command finds the service, and its status is the process's. */
import { createServer } from "node:http";
import { once } from "node:events";
import { afterAll, describe, expect, it } from "vitest";
import { DEV_PORT } from "../../bin/serve/commands.js";
import { endAll, run, start } from "./holdfast.js";

afterAll(endAll);

const ASK = `
  const response = await fetch(process.env.HOLDFAST_URL + "/v1/health");
  console.log((await response.json()).status, process.env.HOLDFAST_TABLE);
  process.exit(3);
`;

const UNTIL_ASKED = `
  process.on("SIGTERM", () => {
    console.log("asked");
    process.exit(5);
  });
  setInterval(() => undefined, 60_000);
  console.log("ready");
`;

describe("holdfast dev -- COMMAND", () => {
  it("runs it beside the service, and ends with its status", async () => {
    const { status, stdout, stderr } = await run(["dev", "--", "node", "--input-type=module", "-e", ASK], { HOLDFAST_TABLE: "another" });
    expect({ status, stdout, stderr }).toEqual({ status: 3, stdout: "ok undefined\n", stderr: "" });
  });

  it("logs on stderr with --verbose", async () => {
    const command = `fetch(process.env.HOLDFAST_URL + "/v1/locks/k/break", { method: "POST", headers: { "content-type": "application/json" }, body: '{"reason":"x","fencingToken":1}' })`;
    const { status, stderr } = await run(["dev", "--verbose", "--", "node", "-e", command], {});
    expect([status, stderr]).toEqual([0, expect.stringMatching(/^holdfast: \S+ {2}refused +k +- +not-found\n$/)]);
  });

  it("passes a signal on, and ends when the command does", async () => {
    const running = start(["dev", "--", "node", "-e", UNTIL_ASKED], {});
    await running.printed(/ready/);
    running.signal("SIGTERM");
    expect(await running.ended).toMatchObject({ status: 5, stdout: "ready\nasked\n" });
  });

  it("is 127 when the command is not there", async () => {
    expect(await run(["dev", "--", "no-such-command"], {})).toMatchObject({
      status: 127,
      stderr: "holdfast: no-such-command: command not found\n",
    });
  });
});

describe("holdfast dev", () => {
  it("takes the next port when its own is in use, and says so", async () => {
    const other = createServer().listen(DEV_PORT, "127.0.0.1");
    // Somebody else may have it already, which is as good.
    await Promise.race([once(other, "listening"), once(other, "error")]).catch(() => undefined);
    const running = start(["dev"], {});
    const ready = await running.printed(/Lock activity/);
    expect(ready).toContain(`; port ${DEV_PORT} is in use)`);
    expect(Number(/:(\d+) /.exec(ready)?.[1])).toBeGreaterThan(DEV_PORT);
    running.signal("SIGTERM");
    expect((await running.ended).status).toBe(143);
    other.close();
  });
});
