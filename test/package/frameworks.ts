/**
 * The frameworks, in their lowest and newest versions, with the packed package. They are no peers (decision 025), so the ranges stand here.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { type Packed, run } from "./project.js";

const OF_NEST = ["rxjs@7.8.2", "reflect-metadata@0.2.2"];

const nest = (version: string, express: string, fastify: string): readonly string[] => [
  ...["common", "core"].map((name) => `@nestjs/${name}@${version}`),
  ...[`@nestjs/platform-express@${express}`, `@nestjs/platform-fastify@${fastify}`],
];

const VERSIONS = [
  // Nest's adapter of Fastify names the wrong peer before 11.0.3.
  {
    versions: "lowest",
    packages: ["express@5.0.0", "fastify@5.0.0", "hono@4.0.0", ...nest("11.0.0", "11.0.0", "11.0.3")],
    forms: [[], ["--commonjs"]],
  },
  // Nest 12 is an ES module only.
  { versions: "newest", packages: ["express@5.3.0", "fastify@5.12.8", "hono@4.13.19", ...nest("12.5.1", "12.5.0", "12.5.0")], forms: [[]] },
];

/** Describes the entries for frameworks with each of those. */
export function describeFrameworks(packed: () => Packed): void {
  describe.each(VERSIONS)("with the $versions versions of the frameworks", ({ versions, packages, forms }) => {
    let project: string;

    beforeAll(async () => {
      project = await packed().project(`frameworks-${versions}`, "module", [...packages, ...OF_NEST]);
    });

    it.each(forms.map((flags) => ({ flags })))("serves a route once per key in each of them $flags", async ({ flags }) => {
      expect(await run(project, process.execPath, ["frameworks.mjs", ...flags])).toEqual({
        stdout: "express, fastify, hono, nest on express, nest on fastify\n",
        stderr: "",
      });
    });
  });
}
