/**
 * CloudWatch's JSON filter patterns, as far as the metric filters use them: `&&`, `||`, parentheses, comparisons of
 * numbers, `IS TRUE`, and text with `*` for any characters. A field that is missing matches nothing.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
 */
type Matches = (line: Readonly<Record<string, unknown>>) => boolean;

const TOKEN = /\s*(&&|\|\||[(){}]|"[^"]*"|>=|>|=|IS TRUE|\$\.\w+|\d+)/y;

/** Returns the test of a pattern. @throws Error if the pattern has anything else. */
export function filterPattern(pattern: string): Matches {
  const tokens = tokensOf(pattern);
  const take = (expected?: string): string => {
    const token = tokens.shift() ?? "the end";
    if (expected !== undefined && token !== expected) throw new Error(`${token} instead of ${expected}: ${pattern}`);
    return token;
  };

  /** Reads alternatives of conjunctions, the weaker operator first. */
  function alternatives(): Matches {
    return joined("||", () => joined("&&", condition));
  }

  function joined(operator: "||" | "&&", next: () => Matches): Matches {
    const parts = [next()];
    for (; tokens[0] === operator; parts.push(next())) take();
    return (line) => (operator === "||" ? parts.some((part) => part(line)) : parts.every((part) => part(line)));
  }

  function condition(): Matches {
    const token = take();
    if (token === "(") {
      const inner = alternatives();
      take(")");
      return inner;
    }
    if (!token.startsWith("$.")) throw new Error(`${token} is no field: ${pattern}`);
    const field = token.slice(2);
    const operator = take();
    if (operator === "IS TRUE") return (line) => line[field] === true;
    const text = take();
    if (text.startsWith('"')) return equal(field, operator, text.slice(1, -1));
    const than = Number(text);
    if (Number.isNaN(than) || operator === "=") throw new Error(`${operator} ${text}: ${pattern}`);
    return (line) => typeof line[field] === "number" && (operator === ">" ? line[field] > than : line[field] >= than);
  }

  function equal(field: string, operator: string, text: string): Matches {
    if (operator !== "=") throw new Error(`${operator} of text: ${pattern}`);
    const form = new RegExp(`^${text.split("*").map(escaped).join(".*")}$`, "s");
    return (line) => typeof line[field] === "string" && form.test(line[field]);
  }

  take("{");
  const matches = alternatives();
  take("}");
  if (tokens.length > 0) throw new Error(`more after the end: ${pattern}`);
  return matches;
}

function tokensOf(pattern: string): string[] {
  const tokens: string[] = [];
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < pattern.length;) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(pattern)?.[1];
    if (token === undefined) throw new Error(`not understood from character ${at}: ${pattern}`);
    tokens.push(token);
  }
  return tokens;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.|?*+()[\]{}]/g, "\\$&");
}
