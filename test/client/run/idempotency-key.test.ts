/** The key in a request's Idempotency-Key header, in the forms that callers send. */
import { describe, expect, it } from "vitest";
import { idempotencyKeyOf, InvalidRequestError, key } from "../../../lib/index.js";
import { isKey } from "../../../lib/core/key.js";

const UUID = "8e03978e-40d5-43e8-bc93-6894a57f9324";

describe("idempotencyKeyOf", () => {
  it.each<[what: string, header: string, text: string]>([
    ["quoted, as the draft has it", `"${UUID}"`, UUID],
    ["bare", UUID, UUID],
    ["with blanks around it", `  "${UUID}"\t`, UUID],
    ["with quotes and backslashes within", String.raw`"a\"b\"\\c"`, String.raw`a"b"\c`],
    ["quoted, with a comma within", '"a,b"', "a,b"],
    ["with a backslash that escapes nothing", String.raw`"a\b"`, String.raw`a\b`],
    ["of odd characters", "a/b?c=d&~%20", "a/b?c=d&~%20"],
    ["of dots", "..", ".."],
    ["as long as one may be", "x".repeat(255), "x".repeat(255)],
  ])("reads one that is %s", (_what, header, text) => {
    const found = idempotencyKeyOf({ "idempotency-key": header });
    expect(found).toBe(key(text));
    expect(isKey(found)).toBe(true);
  });

  it("reads quoted and bare as the same", () => {
    expect(idempotencyKeyOf({ "Idempotency-Key": `"${UUID}"` })).toBe(idempotencyKeyOf({ "Idempotency-Key": UUID }));
  });

  it("reads a quoted one's parameters as none of the key, as with any structured field", () => {
    expect(idempotencyKeyOf({ "Idempotency-Key": `"${UUID}";v=1` })).toBe(UUID);
  });

  it.each(["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY", "iDeMpOtEnCy-KeY"])("finds it as %s", (name) => {
    expect(idempotencyKeyOf({ host: "localhost", [name]: "7" })).toBe("7");
  });

  it.each<[what: string, headers: Parameters<typeof idempotencyKeyOf>[0]]>([
    ["null in place of headers, as a test event of API Gateway has", null],
    ["no headers", {}],
    ["other headers", { "x-idempotency-key": "7", host: "localhost" }],
    ["undefined", { "Idempotency-Key": undefined }],
    ["nothing", { "Idempotency-Key": "" }],
    ["blanks", { "Idempotency-Key": "   " }],
    ["quotes around nothing", { "Idempotency-Key": '""' }],
    ["one quote", { "Idempotency-Key": '"' }],
    ["a bare text with a quote", { "Idempotency-Key": 'a"b' }],
    ["two words", { "Idempotency-Key": "two words" }],
    ["letters beyond ASCII", { "Idempotency-Key": "schlüssel" }],
    ["256 characters", { "Idempotency-Key": "x".repeat(256) }],
    ["the header twice, as API Gateway joins it", { "Idempotency-Key": "7,7" }],
    ["the header twice, as Node joins it", { "Idempotency-Key": "7, 7" }],
    ["the header twice, quoted", { "Idempotency-Key": '"7","7"' }],
    ["the header twice, quoted and with parameters", { "Idempotency-Key": '"7";v=1, "7";v=1' }],
    ["the header twice, as a REST API lists it", { "Idempotency-Key": ["7", "7"] }],
    ["the header twice, in two spellings", { "Idempotency-Key": "7", "idempotency-key": "7" }],
    [
      "the header twice, as `fetch` has it",
      new Headers([
        ["Idempotency-Key", "7"],
        ["Idempotency-Key", "7"],
      ]),
    ],
  ])("refuses a request with %s, by the header's name", (_what, headers) => {
    const read = () => idempotencyKeyOf(headers);
    expect(read).toThrow(InvalidRequestError);
    expect(read).toThrow("Idempotency-Key: the request needs this header once, with 1 to 255 visible characters");
  });

  it("takes what `fetch` calls headers", () => {
    const { headers } = new Request("http://localhost/", { headers: { "Idempotency-Key": `"${UUID}"` } });
    expect(idempotencyKeyOf(headers)).toBe(UUID);
  });

  it("never makes one key of two", () => {
    const odd = ["a_b", "a~5Fb", "a,b", "a%2Cb", "a+b", "A_B", "a/b", '"a_b', "a_b.", "x".repeat(254), "x".repeat(255)];
    const keys = odd.map((text) => idempotencyKeyOf({ "Idempotency-Key": `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"` }));
    expect(new Set(keys).size).toBe(odd.length);
  });
});
