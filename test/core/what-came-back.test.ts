/** The table of what can come back, by the codes of runtimes and the statuses of gateways that no server of a test can give. */
import { describe, expect, it } from "vitest";
import { Contact, meaningOfFailure, meaningOfStatus } from "../../lib/core/what-came-back.js";

const failed = (code: string): unknown => Object.assign(new Error("x"), { code });
const said = (message: string): unknown => new TypeError("fetch failed", { cause: new Error(message) });

describe("a failure of the transport", () => {
  it.each([
    ...["SELF_SIGNED_CERT_IN_CHAIN", "DEPTH_ZERO_SELF_SIGNED_CERT", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"],
    ...["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID", "ERR_TLS_CERT_ALTNAME_INVALID", "HOSTNAME_MISMATCH", "INVALID_CA"],
  ])("%s is a certificate that is not trusted", (code) => {
    expect(meaningOfFailure(failed(code))).toEqual({ meaning: "untrusted", why: code });
    expect(meaningOfFailure(new TypeError("fetch failed", { cause: failed(code) }))).toEqual({ meaning: "untrusted", why: code });
  });

  it.each([
    ["a code of Node", failed("ERR_ACCESS_DENIED")],
    ["a name of Deno", Object.assign(new Error("Requires net access"), { name: "NotCapable" })],
    ["a name of an earlier Deno", Object.assign(new Error("Requires net access"), { name: "PermissionDenied" })],
  ])("%s for a missing permission is told so", (_what, error) => {
    expect(meaningOfFailure(error).meaning).toBe("not-permitted");
  });

  it.each(["ECONNREFUSED", "ENOTFOUND"])("%s is nobody", (code) => {
    expect(meaningOfFailure(failed(code)).meaning).toBe("nobody");
  });

  it.each(["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "HPE_INVALID_CONSTANT", "ERR_PROXY_TUNNEL"])("%s is a stranger", (code) => {
    expect(meaningOfFailure(failed(code)).meaning).toBe("stranger");
  });

  it.each([
    ...["ECONNRESET", "EPIPE", "ETIMEDOUT", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
    ...["UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT", "HPE_INVALID_EOF_STATE"],
  ])("%s is an outage", (code) => {
    expect(meaningOfFailure(failed(code)).meaning).toBe("outage");
  });

  it.each([
    ["invalid peer certificate: UnknownIssuer", "untrusted"],
    ["tcp connect error: Connection refused (os error 111)", "nobody"],
    ["dns error: failed to lookup address information", "nobody"],
    ["received corrupt message of type InvalidContentType", "stranger"],
    ["error reading a body from connection", "outage"],
  ])("is told by its message in a runtime without codes: %s", (message, meaning) => {
    expect(meaningOfFailure(said(message)).meaning).toBe(meaning);
  });
});

describe("a status that is not the service's", () => {
  it.each([
    [[200, 204, 301, 302, 307, 400, 405, 409, 451, 501, 505, 511], "stranger"],
    [[401, 403, 404, 407, 413], "refused"],
    [[429], "throttled"],
    [[408, 500, 502, 503, 504, 520, 529], "outage"],
  ])("%j: %s", (statuses, meaning) => {
    expect(statuses.map(meaningOfStatus)).toEqual(statuses.map(() => meaning));
  });
});

describe("an address where the service never answered", () => {
  it("is wrong after eight attempts, and never if the service answered", () => {
    const [unknown, known] = [new Contact(), new Contact()];
    expect(Array.from({ length: 9 }, () => unknown.missed())).toEqual([...Array<boolean>(7).fill(false), true, true]);
    known.made();
    expect([known.missed(), known.wasMade, unknown.wasMade]).toEqual([false, true, false]);
  });
});
