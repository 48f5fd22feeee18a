/**
 * Golden requests and answers: for each operation, status and code of the HTTP contract, what the SDK sent, what the service answered, and what
 * the SDK read in that. `golden/http-v1.json` has those of the version in the paths, `/v1`. What is in it never changes: a scene to which
 * something was added is recorded once more. A change of the contract turns this red, and there are two ways to green:
 *
 *  - An addition (a member of an answer, an option, an operation or a code, with a scene of its own): read the difference, then run
 *    `npx vitest run test/upgrade/golden-exchanges -u`. It records additions, and nothing else.
 *  - What is gone or means something else needs a new version of the contract: paths under `/v2` with golden exchanges of their own, while `/v1`
 *    is served as before. Mostly a new name or a new value beside the old one is enough, and that is an addition.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { format, resolveConfig } from "prettier";
import { describe, expect, inject, it } from "vitest";
import { matchRoute } from "../../lambda/match-route.js";
import { openapi } from "../../lib/contract/openapi.js";
import { OPERATIONS } from "../../lib/contract/operations.js";
import { ROUTES } from "../../lib/contract/routes.js";
import { ERRORS } from "../../lib/core/errors.js";
import { type Exchange, lackingIn, play, SCENE_NAMES } from "./golden-exchanges.js";

const FILE = join(import.meta.dirname, "golden/http-v1.json");
const CHANGED =
  "the HTTP contract lost or changed something, so clients of another version would be misled: it needs a new version of the contract, or a new name beside the old one (see the top of this file)";
const ADDED =
  "something was added to the HTTP contract: read the difference, then record it by npx vitest run test/upgrade/golden-exchanges -u";

type Golden = Readonly<Record<string, readonly (readonly Exchange[])[]>>;

/** Every recording of every scene, the latest last. */
const golden = (): Golden => (existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as Golden) : {});
const recordingsOf = (scene: string): Golden[string] => golden()[scene] ?? [];
const exchanges = (): readonly Exchange[] => Object.values(golden()).flat(2);

it.runIf(inject("isRecording"))("additions are recorded", async () => {
  const recorded: Record<string, readonly (readonly Exchange[])[]> = { ...golden() };
  for (const scene of SCENE_NAMES) {
    const [made, recordings] = [await play(scene), recorded[scene] ?? []];
    const last = recordings.at(-1);
    if (!last || (lackingIn(made, last).length === 0 && lackingIn(last, made).length > 0)) recorded[scene] = [...recordings, made];
  }
  writeFileSync(FILE, await format(JSON.stringify(recorded), { ...(await resolveConfig(FILE)), filepath: FILE }));
});

it("no scene is gone, and each is recorded", () => {
  expect([...SCENE_NAMES].sort(), ADDED).toEqual(Object.keys(golden()).sort());
});

describe.each(SCENE_NAMES)("%s", (scene) => {
  it("is sent, answered and read as it was", async () => {
    const [made, last] = [await play(scene), recordingsOf(scene).at(-1)];
    expect(lackingIn(made, last), CHANGED).toEqual([]);
    expect(lackingIn(last, made), ADDED).toEqual([]);
  });

  it("is answered by today's service as it was, to the requests of each earlier SDK", async () => {
    for (const recorded of recordingsOf(scene)) {
      const made = await play(scene, { request: (_made, index) => recorded[index]!.request });
      expect(lackingIn(answersOf(made), answersOf(recorded)), CHANGED).toEqual([]);
    }
  });

  it("is read by today's SDK as it was, in the answers of each earlier service", async () => {
    for (const recorded of recordingsOf(scene)) {
      const made = await play(scene, { answer: (_made, index) => recorded[index]!.answer });
      expect(lackingIn(readIn(made), readIn(recorded)), CHANGED).toEqual([]);
    }
  });

  it("is read by today's SDK as it was, though a later service adds members to each part of an answer", async () => {
    for (const recorded of recordingsOf(scene)) {
      const made = await play(scene, { answer: (_made, index) => withMore(recorded[index]!.answer) });
      expect(lackingIn(readIn(made), readIn(recorded)), CHANGED).toEqual([]);
    }
  });
});

const answersOf = (scene: readonly Exchange[]): readonly unknown[] => scene.map(({ answer }) => answer);
const readIn = (scene: readonly Exchange[]): readonly unknown[] => scene.map(({ read }) => read);

/** Returns the answer with another member in each object of its body. The members of two objects are keys. */
function withMore({ body, ...answer }: Exchange["answer"]): Exchange["answer"] {
  const more = (value: unknown, of = ""): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((part) => more(part));
    const parts = Object.entries(value).map(([name, part]) => [name, more(part, name)]);
    return Object.fromEntries(["fencingTokens", "states"].includes(of) ? parts : [...parts, ["ofALaterVersion", { is: 1 }]]);
  };
  return { ...answer, ...(body !== undefined && { body: more(body) }) };
}

describe("the golden exchanges", () => {
  const pathOf = ({ request }: Exchange): string => request.path.split("?", 1)[0] ?? "";
  const namesIn = (value: unknown): readonly string[] =>
    typeof value === "object" && value !== null ? [...Object.keys(value), ...Object.values(value).flatMap(namesIn)] : [];

  it("have each operation, with each status of its answers", () => {
    const made = new Set(
      exchanges().map((exchange) => `${matchRoute(exchange.request.method, pathOf(exchange))?.routeKey} ${exchange.answer.status}`),
    );
    const wanted = Object.entries(OPERATIONS).flatMap(([name, { answers }]) =>
      Object.keys(answers).map((status) => `${ROUTES[name as keyof typeof ROUTES]} ${status}`),
    );
    expect([...wanted, `${ROUTES.openapi} 200`].filter((pair) => !made.has(pair))).toEqual([]);
  });

  it("have each code of a refusal", () => {
    const made = new Set(exchanges().map(({ answer }) => (answer.body as { readonly code?: string } | undefined)?.code));
    expect(Object.keys(ERRORS).filter((code) => !made.has(code))).toEqual([]);
  });

  it("have each member, parameter and header of the OpenAPI document", () => {
    const wanted = new Set<string>();
    JSON.stringify(openapi(), function (this: { readonly schema?: unknown }, name, value: unknown) {
      if (["properties", "headers"].includes(name)) Object.keys(value as object).forEach((member) => wanted.add(member.toLowerCase()));
      if (name === "name" && this.schema !== undefined) wanted.add(String(value).toLowerCase());
      return value;
    });
    const made = new Set(
      exchanges().flatMap(({ request, answer }) => {
        const { searchParams } = new URL(request.path, "https://api.example.com");
        return ["key", "leaseId", ...namesIn(request), ...searchParams.keys(), ...namesIn(answer)].map((name) => name.toLowerCase());
      }),
    );
    // The error of a gateway in place of the service is none of the service's.
    expect([...wanted].filter((name) => !made.has(name) && name !== "message")).toEqual([]);
    expect(wanted.size).toBeGreaterThan(80);
  });
});
