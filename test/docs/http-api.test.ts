/**
 * "The HTTP API": its reference is the OpenAPI document, its examples answer what they say. To take a change over, after
 * reading the difference:
 *
 *     npx vitest run test/docs/http-api -u
 */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import type { HttpService } from "../support/http-service.js";
import { serve } from "../support/http-service.js";
import { ROOT } from "../tidy/tree.js";
import { deadLinks, readPage, withParts } from "./generated.js";
import { EXAMPLES } from "./http-examples.js";
import { httpReference, httpRoutes } from "./http-reference.js";

const run = promisify(execFile);
const PATH = "docs/http-api.md";
const PAGE = readPage(PATH);
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);

describe("the page of the HTTP API", () => {
  it("has its reference as the OpenAPI document makes it", async () => {
    const how = "the API changed: review it, then run npx vitest run test/docs/http-api -u";
    await expect(await withParts(PAGE, httpReference()), how).toMatchFileSnapshot(join(ROOT, PATH));
  });

  it("has every route, and an example for the most used", () => {
    expect(httpRoutes().filter((route) => !PAGE.includes(`\n\`${route}\`\n`))).toEqual([]);
    const shown = [...PAGE.matchAll(/^curl .*$/gm)].map(([line]) => line);
    expect(shown.toSorted()).toEqual(
      Object.values(EXAMPLES)
        .map(({ line }) => line)
        .toSorted(),
    );
  });

  it("control: another limit, or a route less, is another page", async () => {
    const parts = httpReference();
    const changed = parts["locks"]!.replace("1 000 to 86 400 000", "1 000 to 86 400 001");
    expect(changed).not.toBe(parts["locks"]);
    expect(await withParts(PAGE, { ...parts, locks: changed })).not.toBe(PAGE);
  });

  it("has links that lead somewhere, within the page too", () => {
    expect(deadLinks(PATH)).toEqual([]);
    const headings = new Set([...PAGE.matchAll(/^### Answer: (\w+)$/gm)].map(([, heading = ""]) => `answer-${heading.toLowerCase()}`));
    const within = [...PAGE.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = ""]) => anchor);
    expect(within.length).toBeGreaterThan(20);
    expect(within.filter((anchor) => !headings.has(anchor))).toEqual([]);
  });

  it("says the longest wait as the code has it", () => {
    expect(PAGE).toContain(`for ${LIMITS.serverWaitMs / 1000} s at most`);
    expect(PAGE).toContain(`1 to ${LIMITS.keyChars} characters`);
  });
});

describe.skipIf(!HAS_CURL)("the page's examples", () => {
  let service: HttpService;
  beforeAll(async () => {
    service = await serve();
  });
  afterAll(() => service.close());

  it("answer what they say, in their order", async () => {
    const [setUp = ""] = [...PAGE.matchAll(/```sh\n(URL=[\s\S]*?)```/g)].map(([, text = ""]) => text);
    const lines = Object.values(EXAMPLES).map(({ line }) => line.replace("curl -i", "curl -s -o /dev/null -w '%{http_code}\\n'"));
    // The service's clock is stopped at its own time, and leaseIds need that time.
    const atServiceTime = setUp.replace("http://127.0.0.1:8787", service.url).replace("Date.now()", `(${service.clock.wallMs()})`);
    const script = [atServiceTime, ...lines].join("\n");
    const { stdout } = await run("bash", ["-c", `set -euo pipefail\n${script}`]);
    expect(stdout.trim().split("\n").map(Number)).toEqual(Object.values(EXAMPLES).map(({ status }) => status));
  });
});
