/** Dependencies: licences of a stated list, exact versions, and an audit that fails for what reaches users. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeAudit } from "./audit.js";
import { installedPackages, isAllowed, refusedLicences } from "./licences.js";
import { ROOT } from "./tree.js";

const PACKAGES = installedPackages();

describe("the licence of every package", () => {
  it("is one of the list, or an exception with a reason", () => {
    expect(PACKAGES.length).toBeGreaterThan(300);
    expect(refusedLicences(PACKAGES)).toEqual([]);
  });

  it.each(["GPL-3.0-only", "(MIT AND GPL-3.0-only)", "MPL-2.0", "UNLICENSED", "SEE LICENSE IN LICENSE.md", ""])(
    "control: %j is refused",
    (licence) => {
      expect(isAllowed(licence)).toBe(false);
      const odd = { path: "node_modules/odd", name: "odd", version: "1.0.0", licence, isDev: true };
      expect(refusedLicences([...PACKAGES, odd])).toHaveLength(1);
    },
  );

  it.each(["MIT", "(MIT OR GPL-3.0-or-later)", "Apache-2.0 AND ISC"])("control: %s is not", (licence) => {
    expect(isAllowed(licence)).toBe(true);
  });
});

it("every dependency has an exact version in package.json", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<string, Record<string, string>>;
  const versions = Object.entries({ ...manifest["dependencies"], ...manifest["devDependencies"] });
  expect(versions.filter(([, version]) => !/^(?:npm:@?[\w/-]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
});

describe("an audit", () => {
  const report = (...names: readonly string[]): string =>
    JSON.stringify({ vulnerabilities: Object.fromEntries(names.map((name) => [name, { severity: "high", range: "<2" }])) });
  const shipped = new Set(["valibot", "@smithy/core"]);

  it.each([
    ["nothing", report(), false],
    ["a tool", report("vite"), false],
    ["a dependency", report("vite", "valibot"), true],
    ["a part of the bundle", report("@smithy/core"), true],
  ])("that finds %s fails: %s", (_what, stdout, isFailure) => {
    expect(describeAudit(stdout, shipped).isFailure).toBe(isFailure);
  });

  it("lists what it finds", () => {
    expect(describeAudit(report("vite", "valibot"), shipped).text).toBe(
      "audit: 2 packages reach users, 1 of them with known vulnerabilities\nvalibot <2: high\n(for developers alone) vite <2: high",
    );
  });

  it.each([
    ["an error of the registry", JSON.stringify({ message: "405 Method Not Allowed - POST https://example.com/audit", statusCode: 405 })],
    ["nothing at all", ""],
  ])("without an answer (%s) says so in a box, and passes", (_what, stdout) => {
    const { text, isFailure } = describeAudit(stdout, shipped);
    expect(isFailure).toBe(false);
    expect(text).toContain("* NOT RUN: the audit of the dependencies.");
    expect(text).not.toContain("example.com");
  });
});
