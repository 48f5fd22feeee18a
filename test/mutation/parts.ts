/** The parts of the product that mutation tests score, each with the tests that must catch its mutants. */

/** Files that are mutated, and the tests that run on each of their mutants. */
export interface Part {
  readonly name: string;
  readonly files: RegExp;
  /**
   * Globs of tests that name their cases and take milliseconds each. Tests of random histories are left out, since they would catch
   * some mutants by luck.
   */
  readonly tests: readonly string[];
}

/** All parts. The files left out declare only types or numbers. */
export const PARTS: readonly Part[] = [
  {
    name: "core",
    files: /^lib\/core\/(?!api\/|(?:commands|record|version|request-defaults)\.ts)/,
    tests: [
      "test/core/*.test.ts",
      "test/store/{forms,form-states,record-bytes}.test.ts",
      "test/contract/errors.test.ts",
      "test/client/run/fingerprint.test.ts",
    ],
  },
  {
    name: "items",
    files: /^lib\/store\/dynamo\/(?:item|layout|attribute-value)\.ts$/,
    tests: ["test/store/item.test.ts"],
  },
  {
    name: "forms",
    files: /^lib\/store\/dynamo\/(?:predicates|holding|forms)\.ts$/,
    tests: ["test/store/{item,forms,form-states}.test.ts"],
  },
  {
    name: "client",
    files: /^lib\/client\/(?:ask\/deadline|calls\/run\/json-codec)\.ts$/,
    tests: ["test/client/{lease/deadline,run/json-codec}.test.ts"],
  },
  {
    name: "function URLs",
    files: /^lambda\/function-url\.ts$/,
    tests: ["test/lambda/function-url.test.ts"],
  },
];
