/**
 * How code here is linted: typescript-eslint at its strictest, types included, adapted below; then the
 * bans, each with its replacement in the message. A ban names its concern, and ROOMS says who may do what.
 */
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

const CLOCK = "Time comes from a Clock (lib/core/time.ts), so that a test can turn it.";
const RANDOM =
  "Randomness comes from lib/core/random.ts, which keeps none that a clone of the process would have too, and as an argument where a simulation repeats it.";
const ENV =
  "The environment is read where things are put together (lambda/main.ts, lib/client/wire/environment.ts, bin/): take an option instead.";
const CONSOLE = "Say it by returning it, throwing it, or through the log or onEvent you were handed.";
const BRANDED = "Another copy of the package has other classes: isA() of lib/core/brand.ts goes by the brand.";
const CONFUSION = "That is the browser's global: declare or import what you mean.";
const PURE = "lib/core is pure: no randomness, no I/O. Take the bytes as an argument.";

/** The calls that draw from OpenSSL's generator. */
const DRAWS = ["getRandomValues", "randomBytes", "randomFill", "randomFillSync", "randomInt", "randomUUID"];

const named = (names, message) => names.map((name) => ({ name, message }));
const propertiesOf = (object, properties, message) => properties.map((property) => ({ object, property, message }));

/** The files that become the package's code. */
const PACKAGE = /^(lib|lambda)\//;

/** What is banned, by concern, or in the files that `of` names. Reaching the same thing through `globalThis` or a `node:` module counts too. */
const BANS = {
  time: {
    globals: named(["setTimeout", "setInterval", "setImmediate", "performance"], CLOCK),
    properties: [
      ...propertiesOf("Date", ["now"], CLOCK),
      ...propertiesOf("AbortSignal", ["timeout"], CLOCK),
      ...propertiesOf("process", ["hrtime", "uptime"], CLOCK),
      ...propertiesOf("globalThis", ["Date", "performance", "setTimeout", "setInterval", "setImmediate"], CLOCK),
    ],
    syntax: [
      { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: CLOCK },
      { selector: "CallExpression[callee.name='Date']", message: `${CLOCK} And Date() is text.` },
    ],
    modules: named(["node:timers", "node:timers/promises", "node:perf_hooks"], CLOCK),
  },
  random: {
    properties: [...propertiesOf("Math", ["random"], RANDOM), ...DRAWS.map((property) => ({ property, message: RANDOM }))],
    syntax: [
      {
        selector: `ImportDeclaration[source.value='node:crypto'] > ImportSpecifier[imported.name=/^(${DRAWS.join("|")})$/]`,
        message: RANDOM,
      },
    ],
  },
  env: {
    properties: [...propertiesOf("process", ["env"], ENV), ...propertiesOf("globalThis", ["process"], ENV)],
    modules: [{ name: "node:process", importNames: ["env"], message: ENV }],
  },
  console: {
    globals: named(["console"], CONSOLE),
    properties: [...propertiesOf("globalThis", ["console"], CONSOLE), ...propertiesOf("process", ["stdout", "stderr"], CONSOLE)],
    modules: named(["node:console"], CONSOLE),
  },
  purity: {
    globals: named(["crypto", "fetch", "process"], PURE),
    modules: [{ name: "node:crypto", allowImportNames: ["createHash"], message: PURE }],
  },
  // Classes of the language and of the platform alone: a process has one of each.
  classes: {
    of: PACKAGE,
    syntax: [
      {
        selector:
          "BinaryExpression[operator='instanceof'][right.name!=/^(AbortSignal|Date|Error|EventTarget|Headers|Promise|Response|Set|Uint8Array)$/]",
        message: BRANDED,
      },
    ],
  },
  // The browser's globals that look like a forgotten variable or import.
  confusion: {
    globals: named(["close", "event", "find", "length", "name", "open", "origin", "parent", "status", "stop", "top"], CONFUSION),
  },
};

/** Who may do what. A file belongs to the last room that matches it. */
const ROOMS = [
  { files: ["**"], may: ["time", "random", "env", "console", "purity"] },
  { files: ["lib/**", "lambda/**"], may: ["purity"] },
  { files: ["lib/core/**"], may: [] },
  { files: ["lib/core/time.ts"], may: ["time"] },
  { files: ["lib/core/random.ts"], may: ["random", "purity"] },
  { files: ["lib/testing/virtual-clock.ts"], may: ["time", "purity"] },
  { files: ["lib/client/wire/environment.ts"], may: ["env", "purity"] },
  { files: ["lambda/compose.ts", "lambda/agent.ts"], may: ["console", "purity"] },
  { files: ["lambda/main.ts", "lambda/agent-main.ts"], may: ["env", "purity"] },
  { files: ["infra/**"], may: ["time", "random", "purity"] },
  { files: ["infra/app.ts", "infra/local/start.ts"], may: ["time", "random", "env", "console", "purity"] },
  { files: ["test/**"], may: ["time", "random", "env", "purity"] },
  {
    files: ["test/support/globals.ts", "test/adapters/once.test.ts", "test/infra/lock-service.test.ts"],
    may: ["time", "random", "env", "console", "purity"],
  },
  { files: ["test/lambda/compose.test.ts"], may: ["time", "console", "purity"] },
  { files: ["test/simulation/**"], may: ["console", "purity"] },
  { files: ["test/simulation/world.ts"], may: ["time", "purity"] },
  { files: ["test/tidy/dependencies.ts"], may: ["time", "console", "purity"] },
  { files: ["test/model/main.ts", "test/mutation/main.ts"], may: ["time", "console", "purity"] },
  { files: ["test/chaos/main.ts"], may: ["time", "random", "env", "console", "purity"] },
  { files: ["test/deployed/main.ts"], may: ["env", "console", "purity"] },
  { files: ["test/simulation/main.ts"], may: ["time", "env", "console", "purity"] },
];

function bansFor({ files, may }) {
  const banned = Object.entries(BANS).flatMap(([concern, ban]) =>
    may.includes(concern) || !files.every((file) => (ban.of ?? /^/).test(file)) ? [] : [ban],
  );
  const all = (kind) => banned.flatMap((ban) => ban[kind] ?? []);
  // Without options a rule would keep those of the room before.
  const rule = (options) => (options.length > 0 ? ["error", ...options] : "off");
  return {
    files: files.map((pattern) => (pattern.endsWith(".ts") ? pattern : `${pattern}/*.ts`)),
    rules: {
      "no-restricted-globals": rule(all("globals")),
      "no-restricted-properties": rule(all("properties")),
      "no-restricted-syntax": rule(all("syntax")),
      "no-restricted-imports": rule(all("modules")),
    },
  };
}

export default defineConfig(
  // What .ci/generated imports is made when it runs; it is typed then.
  { ignores: ["dist/", "cdk.out/", "infra/function/", "infra/console/", "coverage/", ".engine/", "docs/site/", ".ci/generated/"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ["tsconfig.json", "examples/frameworks/tsconfig.json", "examples/plugs/tsconfig.json"],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      eqeqeq: "error",
      "no-else-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      // A lost await is a lost lock: a promise is awaited, returned, caught, or marked `void` by someone who thought about it.
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/return-await": ["error", "error-handling-correctness-only"],
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/consistent-type-imports": "error",
      // `item["fv"]`: what may be absent is not written like what is there.
      "@typescript-eslint/dot-notation": ["error", { allowIndexSignaturePropertyAccess: true }],
      // A method of a port is async whether or not this implementation waits: what it throws must be a rejection.
      "@typescript-eslint/require-await": "off",
      // `(line) => void write(line)` and `return done();` say that there is no value as well as braces do.
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidOperator: true, ignoreVoidReturningFunctions: true },
      ],
      "@typescript-eslint/no-meaningless-void-operator": "off",
      // A cast to a class of ours is as visible as one to an interface.
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
      "@typescript-eslint/no-unnecessary-condition": ["error", { allowConstantLoopConditions: "only-allowed-literals" }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true }],
      // An empty environment variable is one that isn't set: `text || fallback` is meant.
      "@typescript-eslint/prefer-nullish-coalescing": ["error", { ignorePrimitives: { string: true } }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
    },
  },
  {
    files: ["lib/**/*.ts", "lambda/**/*.ts"],
    rules: {
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "max-lines": ["error", { max: 300, skipBlankLines: true, skipComments: true }],
      "max-params": ["error", 5],
    },
  },
  {
    // Made of closures here, and `{ stop }` of them may be taken apart.
    files: ["infra/**/*.ts", "test/**/*.ts", "bench/**/*.ts", "examples/**/*.ts"],
    rules: { "@typescript-eslint/unbound-method": "off" },
  },
  {
    // What a test reads off the wire is any, and a test that is wrong about it fails.
    files: ["test/**/*.ts", "bench/**/*.ts", "examples/**/*.ts"],
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
    },
  },
  ...ROOMS.map(bansFor),
);
