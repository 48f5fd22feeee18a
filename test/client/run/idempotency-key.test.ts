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
    ["with blanks within", '" order 7 "', " order 7 "],
    ["with quotes and backslashes within", String.raw`"a \"b\" \\ c"`, String.raw`a "b" \ c`],
    ["with a backslash that escapes nothing", String.raw`"a\b"`, String.raw`a\b`],
    ["bare, with a quote within", 'a"b', 'a"b'],
    ["of odd characters", "a/b?c=d&ä%20\u{1f319}", "a/b?c=d&ä%20\u{1f319}"],
    ["of dots", "..", ".."],
    ["longer than a key may be", "x".repeat(1000), "x".repeat(1000)],
    ["of one quote", '"', '"'],
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

  it.each<[what: string, headers: Record<string, string | undefined> | null]>([
    ["null in place of headers, as a test event of API Gateway has", null],
    ["no headers", {}],
    ["other headers", { "x-idempotency-key": "7", host: "localhost" }],
    ["undefined", { "Idempotency-Key": undefined }],
    ["nothing", { "Idempotency-Key": "" }],
    ["blanks", { "Idempotency-Key": "   " }],
    ["quotes around nothing", { "Idempotency-Key": '""' }],
  ])("refuses a request with %s, by the header's name", (_what, headers) => {
    const read = () => idempotencyKeyOf(headers);
    expect(read).toThrow(InvalidRequestError);
    expect(read).toThrow("Idempotency-Key: the request has no such header, or an empty one");
  });

  it("takes what `fetch` calls headers", () => {
    const { headers } = new Request("http://localhost/", { headers: { "Idempotency-Key": `"${UUID}"` } });
    expect(idempotencyKeyOf(headers as unknown as Record<string, string>)).toBe(UUID);
  });

  it("never makes one key of two", () => {
    const odd = ["a_b", "a~5Fb", "a b", "a%20b", "a+b", "A_B", "a/b", '"a_b', "a_b ", "x".repeat(300), "x".repeat(301)];
    const keys = odd.map((text) => idempotencyKeyOf({ "Idempotency-Key": `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"` }));
    expect(new Set(keys).size).toBe(odd.length);
  });
});
