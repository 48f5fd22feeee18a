/** The reference of the HTTP API, which `npm run docs:reference` writes: it names every route, and its examples answer as they say. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HttpService, serve } from "../support/http-service.js";
import { deadLinks, readPage } from "./generated.js";
import { EXAMPLES } from "./http-examples.js";
import { httpPage, httpRoutes } from "./http-reference.js";

const run = promisify(execFile);
const PAGE = await httpPage();
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);

describe("the reference of the HTTP API", () => {
  it("names every route, and has an example for the most used; control: a route that is left out is reported", () => {
    const missing = (page: string): readonly string[] => httpRoutes().filter((route) => !page.includes(`\n\`${route}\`\n`));
    expect(missing(PAGE)).toEqual([]);
    expect(missing(PAGE.replace("`GET /v1/health`", ""))).toEqual(["GET /v1/health"]);
    const shown = [...PAGE.matchAll(/^curl .*$/gm)].map(([line]) => line);
    expect(shown.toSorted()).toEqual(
      Object.values(EXAMPLES)
        .map(({ line }) => line)
        .toSorted(),
    );
  });

  it("is committed as the code makes it; npm run docs:reference writes it", () => {
    expect(readPage("docs/http-api.md") === PAGE).toBe(true);
  });

  it("has links that lead somewhere, within the page too", () => {
    expect(deadLinks("docs/http-api.md", PAGE)).toEqual([]);
    const headings = new Set([...PAGE.matchAll(/^### Answer: (\w+)$/gm)].map(([, heading = ""]) => `answer-${heading.toLowerCase()}`));
    const within = [...PAGE.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = ""]) => anchor);
    expect(within.length).toBeGreaterThan(20);
    expect(within.filter((anchor) => !headings.has(anchor))).toEqual([]);
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
    const atServiceTime = setUp.replace("http://127.0.0.1:4653", service.url).replace("Date.now()", `(${service.clock.wallMs()})`);
    const script = [atServiceTime, ...lines].join("\n");
    const { stdout } = await run("bash", ["-c", `set -euo pipefail\n${script}`]);
    expect(stdout.trim().split("\n").map(Number)).toEqual(Object.values(EXAMPLES).map(({ status }) => status));
  });
});
