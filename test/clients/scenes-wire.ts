/** Scenes of what goes over the wire: secrets stay, and names and payloads are the same in every language. */
import { readFileSync } from "node:fs";
import { problem } from "./fates.js";
import { type Scene, ask } from "./scene.js";
import type { Exchange } from "./scripted-service.js";

/** One row of payloads.json, which every language's tests read: a payload as JSON, its canonical text, and the SHA-256 of that in base64url. */
interface Payload {
  readonly payload: unknown;
  readonly canonical: string;
  readonly fingerprint: string;
}

const { payloads, keys } = JSON.parse(readFileSync(new URL("payloads.json", import.meta.url), "utf8")) as {
  readonly payloads: readonly Payload[];
  readonly keys: readonly { readonly parts: readonly (string | number)[]; readonly key: string }[];
};

/** Returns a value as JSON in ASCII, as a line of a command is: some languages end a line at other characters too. */
const inAscii = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

const elsewhere = (exchanges: readonly Exchange[]): readonly string[] =>
  exchanges.filter(({ path }) => path.startsWith("/elsewhere")).map(() => "a redirect was followed, with what proves the hold");

/** Names that a path can't have as they are. */
const NAMES = ["with blank", "with#fragment", "with?query", "with%41percent", "with/slash", "umläut", "..", "with\nline"];

const SECRETS: readonly Scene[] = [
  ...[302, 303, 307, 308].map((status): Scene => ({
    name: `a redirect (${status}) is not followed`,
    property: "secrets",
    open: "token",
    rules: [{ on: "acquire", fate: { does: "answer", answer: { status, headers: { location: "{elsewhere}/elsewhere" } } } }],
    play: [ask("acquire k 3s wait 1s", "refused", "busy")],
    sent: elsewhere,
    mistake: "A client that follows redirects, as most libraries do, sends the leaseId and the token to where it points.",
  })),
  {
    name: "a redirect of a release is not followed",
    property: "secrets",
    open: "token",
    rules: [{ on: "release", fate: { does: "answer", answer: { status: 302, headers: { location: "{elsewhere}/elsewhere" } } } }],
    play: [ask("acquire k 2s wait 0s", "granted"), ask("release k", "refused", "lost")],
    sent: elsewhere,
    mistake: "A client that follows redirects sends the token to where it points, and takes that answer for the service's.",
  },
  {
    name: "a token with a line end is refused, and not quoted",
    property: "secrets",
    open: "token",
    play: [ask("token scripted-token-0123456789%0Ax-other:1", "ok"), ask("acquire k 3s wait 0s", "refused")],
    sent: (exchanges) => exchanges.map(() => "a request with a broken header was sent"),
    mistake: "Its error had the whole token.",
  },
  {
    name: "a token that a gateway quotes is not in the error",
    property: "secrets",
    open: "token",
    rules: [
      { on: "acquire", fate: { does: "answer", answer: { status: 403, body: { message: "not valid: scripted-token-0123456789" } } } },
    ],
    play: [ask("acquire k 3s wait 0s", "refused")],
    mistake: "None of those that were tried fails it.",
  },
  ...NAMES.map((name): Scene => ({
    name: `a name is that name, or refused: ${JSON.stringify(name)}`,
    property: "secrets",
    play: [ask(`acquire ${encodeURIComponent(name)} 3s wait 0s`, "refused", "granted")],
    sent: (exchanges) =>
      exchanges
        .filter(({ key }) => key !== name)
        .map(({ method, path }) => `another name was asked for: ${method} ${path.replace(/[0-9a-f-]{36}/, "…")}`),
    mistake: "A part of the name became the query, or another name; or it raised an error of the language's library.",
  })),
];

const SAME: readonly Scene[] = [
  ...payloads.map(({ payload, canonical, fingerprint }): Scene => ({
    name: `the fingerprint of ${canonical.slice(0, 60)}`,
    property: "sameNames",
    rules: [{ on: "start", fate: problem(422, "fingerprint-mismatch", { retry: "never" }) }],
    play: [ask(`run_once r 3s wait 0s payload ${inAscii(payload)}`, "refused fingerprint-mismatch")],
    sent: ([start]) => {
      const sent = (start?.body as { readonly fingerprint?: string } | undefined)?.fingerprint;
      return sent === fingerprint ? [] : [`${sent} was sent, and not ${fingerprint}`];
    },
    mistake: "It sent a digest in hexadecimal: none of 17 was the SDK's.",
  })),
  ...keys.map(({ parts, key }): Scene => ({
    name: `the key of ${JSON.stringify(parts).slice(0, 60)}`,
    property: "sameNames",
    play: [ask(`key ${inAscii(parts)}`, `key ${key}`)],
    mistake: "It wrote 10²¹ with all its digits.",
    ...(parts.some((part) => typeof part === "number" && !Number.isSafeInteger(part)) && {
      cannot: { java: "Its parts are texts and whole numbers: Java writes other numbers in ways of its own." },
    }),
  })),
];

export const WIRE_SCENES: readonly Scene[] = [...SECRETS, ...SAME];
