/** The printed form of a log line: the whole audit trail, and nothing that holds for every line. */
import { describe, expect, it } from "vitest";
import { printed } from "../../lambda/printed.js";
import type { LogLine } from "../../lib/service/log.js";
import { ACQUIRE, directService, RELEASE } from "../support/direct-service.js";

const LINE: LogLine = {
  ...{ event: "granted", namespace: "default", kind: "lock", model: "ORDER", id: "1231", operateAtMs: 1_795_177_821_461, owner: "" },
  ...{ principal: "111122223333/AROAALICE", requestId: "request-1", lease: "d81e3e75eeca", fencingToken: 7, waitedMs: 12 },
};

/** Returns the line that was printed. */
function whole(line: object, operateAtMs: number): object {
  return { namespace: "default", kind: "lock", owner: "", ...line, operateAtMs };
}

describe("a printed line", () => {
  it("says who, what key, which lease, under which token, and in which request", () => {
    expect(printed(LINE, [])).toEqual({
      ...{ event: "granted", model: "ORDER", id: "1231", principal: "111122223333/AROAALICE", requestId: "request-1" },
      ...{ lease: "d81e3e75eeca", fencingToken: 7, waitedMs: 12 },
    });
  });

  it("has namespace, kind and owner where they say something", () => {
    const said = { namespace: "111122223333", kind: "run", owner: "checkout-7" } as const;
    expect(printed({ ...LINE, ...said }, [])).toMatchObject(said);
  });

  it("is the whole line but for its time: a grant, a refusal, a takeover, a release and its repeat can be read back", async () => {
    const { ask, newId, clock, lines } = directService();
    const [first, second] = [newId(), newId()];
    await ask(ACQUIRE, { leaseId: first, body: { leaseMs: 1_000 } });
    await ask(ACQUIRE, { leaseId: newId(), body: { owner: "checkout-7" } });
    await clock.advance(5_000);
    await ask(ACQUIRE, { leaseId: second });
    for (let attempt = 0; attempt < 2; attempt++) await ask(RELEASE, { leaseId: second });
    expect(lines.map(({ event }) => event)).toEqual(["granted", "refused", "ended", "granted", "ended", "ended"]);
    for (const line of lines) expect(whole(printed(line, []), line.operateAtMs)).toEqual({ owner: "", ...line });
  });

  it("takes 230 bytes at most for a lock of a role with short names, half of them for the caller, the request and the key", () => {
    const principal = "111122223333/AROAEXAMPLE0000000001";
    const line = { ...LINE, principal, requestId: "JKJaXmPLvHcESHA=", fencingToken: 1_798_761_700_896 };
    expect(JSON.stringify(printed(line, [])).length).toBeLessThanOrEqual(230);
  });
});
