/** The reference of the HTTP API, which `npm run docs:reference` writes: it names every route, and its examples answer as they say. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HttpService, serve } from "../support/http-service.js";
import { EXAMPLES } from "./http-examples.js";
import { httpPage, httpRoutes } from "./http-reference.js";
import { itIsWhole } from "./made-page.js";

const run = promisify(execFile);
const PAGE = await httpPage();
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);

describe("the reference of the HTTP API", () => {
  itIsWhole("docs/http-api.md", () => Promise.resolve(PAGE), { names: httpRoutes, line: (route) => `\`${route}\`` });

  it("has an example for the most used routes", () => {
    const shown = [...PAGE.matchAll(/^curl .*$/gm)].map(([line]) => line);
    expect(shown.toSorted()).toEqual(
      Object.values(EXAMPLES)
        .map(({ line }) => line)
        .toSorted(),
    );
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
