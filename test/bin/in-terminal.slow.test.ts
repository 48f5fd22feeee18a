/** In a terminal: typed keys, colours, width, and the question before a hold is broken. */
import { spawnSync } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { beforeEach, describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/index.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { widthOf } from "../../bin/terminal.js";
import { run } from "./holdfast.js";
import { serveHere } from "./service.js";
import { inTerminal } from "./terminal.js";

const HAS_SCRIPT = spawnSync("script", ["--version"]).status === 0;

const ESCAPE = "\u001B";
const CTRL_C = "\u0003";
const LONG_MS = 600_000;

const service = serveHere();

beforeEach(({ skip }) => skip(!HAS_SCRIPT, "there is no script (of util-linux) on the path"));

/** Returns the terminal's output in lines, without colours. */
async function linesOf(args: readonly string[], columns: number): Promise<string[]> {
  const { shown } = await inTerminal(args, service.env, { columns, rows: 24 }).ended;
  return stripVTControlCharacters(shown).trimEnd().split("\r\n");
}

describe("a command in a terminal", () => {
  it("has the terminal, and hears a Ctrl-C once", async () => {
    const script = "trap 'echo heard; heard=1' INT; tty; while [ -z \"$heard\" ]; do sleep 0.05; done; sleep 0.3; exit 5";
    const terminal = inTerminal(["lock", "ctrl-c", "--", "sh", "-c", script], service.env);
    await terminal.showed(/\/dev\/pts\/\d+/);
    terminal.type(CTRL_C);
    const { status, shown } = await terminal.ended;
    expect({ status, times: shown.match(/heard/g)?.length }).toEqual({ status: 5, times: 1 });
    expect((await service.locks.inspect("ctrl-c")).holders).toEqual([]);
  });

  it("may ask for a word that isn't shown", async () => {
    const script = 'stty -echo < /dev/tty; printf "Word: " > /dev/tty; read word < /dev/tty; stty echo < /dev/tty; echo "[${#word}]"';
    const terminal = inTerminal(["lock", "password", "--", "sh", "-c", script], service.env);
    await terminal.showed(/Word: $/);
    terminal.type("secret\n");
    const { status, shown } = await terminal.ended;
    expect({ status, shown }).toEqual({ status: 0, shown: expect.stringContaining("[6]") });
    expect(shown).not.toContain("secret");
  });

  it("is given up by Ctrl-C while its key is awaited", async () => {
    await using _theirs = await service.locks.acquire("awaited");
    const terminal = inTerminal(["lock", "awaited", "-v", "--", "true"], service.env);
    while ((await service.locks.inspect("awaited")).waiters.length === 0);
    terminal.type(CTRL_C);
    expect(await terminal.ended).toMatchObject({ status: 130, shown: expect.stringContaining("given up by SIGINT") });
  });
});

describe("a table on a screen", () => {
  const key = `REPORT_${"x".repeat(90)}_2026`;

  it("is as wide as the screen, and whole on a pipe", async () => {
    await using lease = await service.locks.acquire(key, { owner: `${"o".repeat(50)}@build-7`, leaseMs: LONG_MS });
    const lines = await linesOf(["ls", "REPORT_"], 80);
    expect(lines).toHaveLength(2);
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(80);
    expect(lines[1]).toMatch(new RegExp(`^REPORT_x+…x*_2026 +o+…o*@build-7 +…${String(lease.fencingToken).slice(-6)} +`));
    expect((await run(["ls", "REPORT_"], service.env)).stdout).toContain(`${key}  ${"o".repeat(50)}@build-7  exclusive`);
  });

  it.each([80, 60])(
    "fits %i columns with runs, occurrences and limits whose names are long; names are shortened in their middle",
    async (columns) => {
      const owner = `${"o".repeat(50)}@build-7`;
      const locks = createLockClient({ url: service.url, owner });
      const name = `${key}_${columns}`;
      for (let attempt = 0; attempt < DEFAULTS.maxAttempts; attempt++)
        await locks.runOnce(name, () => Promise.reject(new Error("down"))).catch(() => undefined);
      await locks.tick(`tick-${columns}`, { occurrence: new Date() }, () => 1);
      await locks.limiter(name, { rates: [{ count: 1000, perMs: 86_400_000, burst: 1000 }] }).take({ cost: 1000 });
      for (const args of [
        ["runs", name],
        ["ticks", `tick-${columns}`],
        ["limits", name],
      ]) {
        const lines = (await linesOf(args, columns)).filter((line) => !line.startsWith("holdfast: "));
        expect([args[0], lines.length]).toEqual([args[0], 2]);
        expect([args[0], Math.max(...lines.map(widthOf)) <= columns]).toEqual([args[0], true]);
        if (args[0] !== "ticks") expect(lines[1]).toMatch(new RegExp(`^REPORT_x+…[x_\\d]*_${columns} `));
      }
      await locks.close();
    },
  );

  it("counts what a character takes, not how many there are", async () => {
    await using _one = await service.locks.acquire("wide:1", { owner: "会計部会計部会計部", leaseMs: LONG_MS });
    await using _two = await service.locks.acquire("wide:2", { owner: "me", leaseMs: LONG_MS });
    const [, first = "", second = ""] = (await run(["ls", "wide:"], service.env)).stdout.split("\n");
    expect(first.indexOf("exclusive")).toBe(second.indexOf("exclusive") - 9);
  });
});

describe("colours", () => {
  it("are on a terminal, and not where NO_COLOR is set or the terminal has none", async () => {
    const shown = async (env: Readonly<Record<string, string>>): Promise<string> =>
      (await inTerminal(["show", "any"], { ...service.env, ...env }).ended).shown;
    expect(await shown({})).toContain(`${ESCAPE}[32mfree${ESCAPE}[39m`);
    expect(await shown({ NO_COLOR: "1" })).not.toContain(ESCAPE);
    expect(await shown({ TERM: "dumb" })).not.toContain(ESCAPE);
    expect((await run(["show", "any"], service.env)).stdout).not.toContain(ESCAPE);
  });
});

describe("what once kept", () => {
  const PRINTED = `first\t${ESCAPE}]0;title\u0007${ESCAPE}[2Jsecond\u009B31m\n`;

  it("is plain text on a terminal, whatever it was, and the same bytes on a pipe", async () => {
    await service.locks.runOnce("replayed", () => ({ exitCode: 0, stdout: PRINTED }));
    const { shown } = await inTerminal(["once", "replayed", "--", "false"], service.env).ended;
    expect(shown).toBe("first\t\uFFFD]0;title\uFFFD\uFFFD[2Jsecond\uFFFD31m\r\n");
    expect((await run(["once", "replayed", "--", "false"], service.env)).stdout).toBe(PRINTED);
  });
});

describe("break asks a person first", () => {
  const asking = async (key: string) => {
    const lease = await service.locks.acquire(key, { owner: "me" });
    const terminal = inTerminal(["break", key, "--reason", "stuck", "--drain", "0s"], service.env);
    await terminal.showed(
      new RegExp(
        `Break the hold of me \\(token ${lease.fencingToken}, held for .*\\) on ${key}\\? Then the key is free at once\\. \\[y/N\\] `,
      ),
    );
    return { lease, terminal };
  };

  it("and does it when they agree", async () => {
    const { lease, terminal } = await asking("agreed");
    terminal.type("y\n");
    expect(await terminal.ended).toMatchObject({ status: 0, shown: expect.stringContaining("is over now") });
    await expect(lease.renew()).rejects.toMatchObject({ reason: "broken" });
  });

  it.each([
    ["they say no", "n\n", 64, "nothing was broken"],
    ["they say nothing", "\n", 64, "nothing was broken"],
    ["they end the input", "\u0004", 64, "nothing was broken"],
    ["they press Ctrl-C", CTRL_C, 130, "given up by SIGINT"],
  ])("and doesn't when %s", async (what, typed, status, said) => {
    const { lease, terminal } = await asking(`declined-${what.replaceAll(" ", "-")}`);
    terminal.type(typed);
    expect(await terminal.ended).toMatchObject({ status, shown: expect.stringContaining(said) });
    await lease.renew();
    await lease.release();
  });

  it("unless they said so", async () => {
    await service.locks.acquire("yes");
    const { status } = await inTerminal(["break", "yes", "--reason", "stuck", "--yes"], service.env).ended;
    expect(status).toBe(0);
  });
});

describe("reset asks a person before a checkpoint is dropped", () => {
  it.each([
    ["and does it when they agree", "y\n", 0, "dropped"],
    ["and doesn't when they say no", "n\n", 64, "nothing was reset"],
  ])("%s", async (what, typed, status, said) => {
    const key = `far-${status}`;
    const far = service.locks.runOnce(key, async (run) => {
      await run.saveCheckpoint({ page: 3 });
      throw new Error(what);
    });
    await expect(far).rejects.toThrow(what);
    const terminal = inTerminal(["reset", key, "--reason", "wrong source"], service.env);
    await terminal.showed(new RegExp(`Drop the checkpoint {"page":3} of ${key}\\? \\[y/N\\] `));
    terminal.type(typed);
    expect(await terminal.ended).toMatchObject({ status, shown: expect.stringContaining(said) });
    expect((await service.locks.runs.get(key)) === null).toBe(status === 0);
  });
});

describe("a wait in a terminal", () => {
  it("says for whom, and at which place in the queue", async () => {
    await using theirs = await service.locks.acquire("in-use", { owner: "alice" });
    const giveUp = new AbortController();
    const bob = createLockClient({ url: service.url, owner: "bob" });
    const first = bob.acquire("in-use", { signal: giveUp.signal, waitMs: LONG_MS }).catch(() => undefined);
    while ((await service.locks.inspect("in-use")).waiters.length === 0);
    const terminal = inTerminal(["lock", "in-use", "--", "echo", "got it"], service.env);
    await terminal.showed(/^holdfast: waiting for in-use: held by alice for \d+s, you are 2nd\r\n/);
    giveUp.abort();
    await first;
    await terminal.showed(/held by alice for \d+s, you are 1st\r\n/);
    await theirs.release();
    const { status, shown } = await terminal.ended;
    expect({ status, lines: shown.match(/waiting for/g)?.length }).toEqual({ status: 0, lines: 2 });
    expect(shown).toContain("got it");
  });

  it("says on a pipe only what was asked for: nothing, and with -v the same", async () => {
    await using _theirs = await service.locks.acquire("in-use", { owner: "alice" });
    const wait = (...how: readonly string[]) => run(["lock", "in-use", "--wait", "2s", ...how, "--", "true"], service.env);
    const [silent, verbose] = await Promise.all([wait(), wait("-v")]);
    expect(silent.stderr).not.toContain("waiting for");
    expect(verbose.stderr).toMatch(/^holdfast: waiting for in-use: held by alice for \d+s, you are \w+\n/);
  });
});
