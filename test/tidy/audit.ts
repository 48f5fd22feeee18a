/** The registry's answer to `npm audit --json`, and what it means for the packages that reach users. */

export interface AuditOutcome {
  readonly text: string;
  /** True if a package that reaches users has a known vulnerability. */
  readonly isFailure: boolean;
}

interface Report {
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string; readonly range: string }>>;
  readonly message?: string;
}

/** Describes the report: vulnerabilities of `shipped` packages are failures, others are only listed. No report is a box, and no failure. */
export function describeAudit(stdout: string, shipped: ReadonlySet<string>): AuditOutcome {
  const { vulnerabilities, message } = parse(stdout);
  if (!vulnerabilities) {
    const why = message === undefined ? "npm printed no report" : message.replace(/https?:\S+/g, "the registry");
    const lines = ["NOT RUN: the audit of the dependencies.", why, `Nothing is known of the ${shipped.size} packages that reach users.`];
    return { text: box(lines), isFailure: false };
  }
  const found = Object.entries(vulnerabilities).map(([name, { severity, range }]) => ({ name, line: `${name} ${range}: ${severity}` }));
  const reaching = found.filter(({ name }) => shipped.has(name));
  const lines = [
    `audit: ${shipped.size} packages reach users, ${reaching.length} of them with known vulnerabilities`,
    ...reaching.map(({ line }) => line),
    ...found.filter(({ name }) => !shipped.has(name)).map(({ line }) => `(for developers alone) ${line}`),
  ];
  return { text: lines.join("\n"), isFailure: reaching.length > 0 };
}

function parse(stdout: string): Report {
  try {
    return JSON.parse(stdout) as Report;
  } catch {
    return {};
  }
}

function box(lines: readonly string[]): string {
  const width = Math.max(...lines.map(({ length }) => length));
  const edge = "*".repeat(width + 4);
  return ["", edge, ...lines.map((line) => `* ${line.padEnd(width)} *`), edge, ""].join("\n");
}
