/** Imports point down only. The controls are imaginary files that must be refused. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { wrongWay } from "./directions.js";
import { importsOf } from "./imports.js";
import { ROOT, sourcesIn } from "./tree.js";

describe("import directions", () => {
  it("point down the house only", () => {
    const sources = sourcesIn("lib/", "lambda/", "infra/", "console/", "bin/", "examples/");
    expect(sources.length).toBeGreaterThan(20);
    expect(sources.flatMap(wrongWay)).toEqual([]);
  });

  it.each([
    ["lib/core/lock/acquire.ts", `import { item } from "../../store/item.js";`],
    ["lib/core/lock/acquire.ts", `import type { Item } from "../../store/item.js";`],
    ["lib/store/sets.ts", `const sdk = await import("@aws-sdk/client-dynamodb");`],
    ["lib/client/hold/lease.ts", `import { service } from "../../service/locks.js";`],
    ["lib/client/transport.ts", `import { DynamoDBClient } from "@aws-sdk/client-dynamodb";`],
    ["lambda/handler.ts", `import { DynamoDBClient } from "@aws-sdk/client-dynamodb";`],
    ["console/server.ts", `import { splitUrl } from "../infra/local/local-server.js";`],
    ["infra/local/start.ts", `import { exitCodeOf } from "../../bin/exit-codes.js";`],
    ["infra/stack.ts", `import { bundlePage } from "../console/bundle.js";`],
    ["bin/holdfast.ts", `import { createLockClient } from "../lib/client/client.js";`],
  ])("control: %s with %s is refused", (path, text) => {
    expect(wrongWay({ path, text })).toHaveLength(1);
  });

  it.each([
    ["lib/dynamodb.ts", `import { DynamoStore } from "./store/dynamo/dynamo-store.js";`],
    ["lib/core/key.ts", `// import { item } from "../store/item.js";`],
  ])("control: %s with %s is accepted", (path, text) => {
    expect(wrongWay({ path, text })).toEqual([]);
  });
});

describe("packages", () => {
  it("that ship with the code are declared for whoever installs it", () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, object>;
    const declared = new Set([...Object.keys(dependencies!), ...Object.keys(peerDependencies!)]);
    // The console's page ships as one file with these packages in it, and its bundler only runs in a clone.
    const imported = sourcesIn("lib/", "lambda/", "console/", "bin/", "infra/local/")
      .filter(({ path }) => !path.startsWith("console/page/") && path !== "console/bundle.ts")
      .flatMap((source) => importsOf(source).map((found) => ({ ...found, path: source.path })));
    const undeclared = imported.filter(({ package: name }) => {
      if (name === undefined || name.startsWith("node:")) return false;
      return !declared.has(name) && !declared.has(`@types/${name}`);
    });
    expect(undeclared.map(({ path, line, package: name }) => `${path}:${line} imports ${name}`)).toEqual([]);
  });
});
