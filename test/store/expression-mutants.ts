/** Changes of a table's expressions, one at a time: a test that writes by one of them must fail. */

/** One change: its name, and the expression with it. */
export interface ExpressionMutant {
  readonly name: string;
  readonly text: string;
}

/** True and false of every item. Neither leaves a value of the expression unused, which the table would refuse by itself. */
const [ALWAYS, NEVER] = ["OR attribute_not_exists(nothing)", "AND attribute_exists(nothing)"];
/** A function of an attribute, or a comparison. */
const TERM = /(?:NOT )?(?:attribute_(?:not_)?exists|contains)\([^)]*\)|(?:size\([^)]*\)|[\w#.[\]]+) (?:=|[<>]=?) (?:\w|[:#.[\]])+/g;
/** Bounds and their neighbours. */
const NEIGHBOUR: Readonly<Record<string, string>> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };

/** Returns the changes of a condition: each of its terms always true, or always false, and each bound one further or less far. */
export function conditionMutants(condition: string): readonly ExpressionMutant[] {
  return [...condition.matchAll(TERM)].flatMap(({ 0: term, index }) => {
    const changed = (change: string, to: string): ExpressionMutant => ({
      name: `${term} → ${change}`,
      text: condition.slice(0, index) + to + condition.slice(index + term.length),
    });
    const bound = term.replace(/ ([<>]=?) /, (_, sign: string) => ` ${NEIGHBOUR[sign]!} `);
    return [
      changed("true", `(${term} ${ALWAYS})`),
      changed("false", `(${term} ${NEVER})`),
      ...(bound === term ? [] : [changed(bound, bound)]),
    ];
  });
}

/** Returns the changes of an update: each attribute left as it was, each sum without its sign, and each default in place of what is there. */
export function updateMutants(update: string): readonly ExpressionMutant[] {
  const set = [...update.matchAll(/(?<=SET |, )([\w#.[\]]+) = /g)].map(({ 0: to, 1: path = "", index }) => ({
    name: `${path} is not set`,
    text: `${update.slice(0, index)}nothing = ${update.slice(index + to.length)}`,
  }));
  const removed = update.indexOf("REMOVE ");
  const kept =
    removed < 0
      ? []
      : [...update.slice(removed).matchAll(/(?<=REMOVE |, )[\w#.[\]]+/g)].map(({ 0: path, index }) => ({
          name: `${path} is not removed`,
          // A placeholder of a name must be used somewhere.
          text:
            update.slice(0, removed + index) +
            (path.includes("#") ? `nothing.${path.split(".").at(-1)!}` : "nothing") +
            update.slice(removed + index + path.length),
        }));
  const sums = [...update.matchAll(/ ([+-]) /g)].map(({ 0: sign, index }) => ({
    name: `…${update.slice(Math.max(0, index - 20), index + 8)}: ${sign.includes("+") ? "minus" : "plus"}`,
    text: update.slice(0, index) + (sign.includes("+") ? " - " : " + ") + update.slice(index + sign.length),
  }));
  const defaults = [...update.matchAll(/if_not_exists\(([^,]+), ([^)]+)\)/g)].map(({ 0: whole, 2: value = "", index }) => ({
    name: `${whole} → ${value}`,
    text: `${update.slice(0, index)}if_not_exists(nothing, ${value})${update.slice(index + whole.length)}`,
  }));
  return [...set, ...kept, ...sums, ...defaults];
}
