/** `holdfast once --tick`: a command once for each occurrence of a schedule. */
import { describe, expect, it } from "vitest";
import { run } from "./holdfast.js";
import { serveHere } from "./service.js";

/** An interval whose multiples are a year apart: none falls into a test of some seconds. */
const INTERVAL = "365d";
const service = serveHere();

const once = (name: string, ...rest: readonly string[]) => run(["once", "--tick", INTERVAL, name, ...rest], service.env);

describe("once --tick", () => {
  it("runs the command once for the occurrence, whose time is in the key, and prints the same again", async () => {
    const first = await once("nightly", "--", "sh", "-c", 'echo "$HOLDFAST_KEY"');
    expect(first).toMatchObject({ status: 0, stdout: expect.stringMatching(/^nightly_\d{4}-\d\d-\d\dT00:00:00\.000Z\n$/) as string });
    expect(await once("nightly", "--", "echo", "never")).toMatchObject({ status: 0, stdout: first.stdout });
    expect((await service.locks.inspect("nightly")).holders).toEqual([]);
  });

  it("passes on the status of a command that fails, and runs it again", async () => {
    expect(await once("fails", "--", "sh", "-c", "exit 4")).toMatchObject({ status: 4 });
    expect(await once("fails", "--", "sh", "-c", 'echo "$HOLDFAST_ATTEMPT"')).toMatchObject({ status: 0, stdout: "2\n" });
  });

  it("skips an occurrence for good while the one before is running, and says who runs it", async () => {
    const before = await service.locks.acquire("overlaps");
    const said = /^holdfast: overlaps: the occurrence of \S+ is skipped: .* for .* was running\n/;
    expect(await once("overlaps", "--", "echo", "never")).toMatchObject({
      status: 75,
      stdout: "",
      stderr: expect.stringMatching(said) as string,
    });
    await before.release();
    expect(await once("overlaps", "-E", "0", "--", "echo", "never")).toMatchObject({ status: 0, stdout: "" });
  });

  it("takes no fingerprint", async () => {
    const { status, stderr } = await once("nightly", "--fingerprint", "x", "--", "true");
    expect([status, stderr]).toEqual([64, expect.stringContaining("--fingerprint: not with --tick")]);
  });
});
