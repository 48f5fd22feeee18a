/** The template without the CDK, as CloudFormation evaluates it: parameters, conditions and the stack's name put in. */
import { inflateRawSync } from "node:zlib";
import type { Json, PlainTemplate } from "../../infra/template.js";

/** Values of parameters and pseudo parameters, by their names. Those of parameters have defaults. */
export type Values = Readonly<Record<string, string>>;

/** A resource of a template. */
export type PlainResource = Readonly<Record<string, Json>>;

interface Parameter {
  readonly Type: string;
  readonly Default?: string | number;
}

/** Returns the resources that CloudFormation makes with these values, with all parameters, conditions and names put in. */
export function resourcesOf({ Parameters, Conditions, Resources }: PlainTemplate, values: Values): Readonly<Record<string, PlainResource>> {
  const valueOf = (name: string): Json | undefined => parameterIn(Parameters, values, name);
  /** Returns undefined for a value that is left out. */
  const evaluated = (json: Json): Json | undefined => {
    if (typeof json !== "object" || json === null) return json;
    if (Array.isArray(json)) return (json as readonly Json[]).map(evaluated).filter((item) => item !== undefined);
    const { Ref: name, "Fn::If": choice, "Fn::Sub": text, "Fn::Split": split } = json as Readonly<Record<string, Json>>;
    if (name === "AWS::NoValue") return undefined;
    if (typeof name === "string" && valueOf(name) !== undefined) return valueOf(name);
    if (typeof text === "string") return joined(text, values);
    if (split) {
      const [separator, joint] = split as readonly [string, Json];
      return (evaluated(joint) as string).split(separator);
    }
    if (choice) {
      const [condition, yes, no] = choice as readonly [string, Json, Json];
      return evaluated(holds(Conditions[condition]!, valueOf) ? yes : no);
    }
    return Object.fromEntries(
      Object.entries(json).flatMap(([member, value]) => {
        const made = evaluated(value);
        return made === undefined ? [] : [[member, made]];
      }),
    );
  };
  return Object.fromEntries(
    Object.entries(Resources).flatMap(([id, { Condition, ...resource }]) =>
      typeof Condition === "string" && !holds(Conditions[Condition]!, valueOf) ? [] : [[id, evaluated(resource) as PlainResource]],
    ),
  );
}

/** Returns what the rules of the template that refuse these values say. */
export function refusalsOf({ Parameters, Rules }: PlainTemplate, values: Values): readonly string[] {
  interface Rule {
    readonly RuleCondition: Json;
    readonly Assertions: readonly { readonly Assert: Json; readonly AssertDescription: string }[];
  }
  const valueOf = (name: string): Json | undefined => parameterIn(Parameters, values, name);
  return (Object.values(Rules) as readonly unknown[] as readonly Rule[]).flatMap(({ RuleCondition, Assertions }) =>
    holds(RuleCondition, valueOf)
      ? Assertions.flatMap(({ Assert, AssertDescription }) => (holds(Assert, valueOf) ? [] : [AssertDescription]))
      : [],
  );
}

function parameterIn(parameters: PlainTemplate["Parameters"], values: Values, name: string): Json | undefined {
  const { Type, Default } = (parameters[name] ?? {}) as Partial<Parameter>;
  const value = values[name] ?? Default;
  return Type === "Number" && value !== undefined ? Number(value) : value;
}

/** Evaluates a condition of a rule, or of a resource. */
function holds(condition: Json, valueOf: (name: string) => Json | undefined): boolean {
  const { "Fn::Not": not, "Fn::Equals": equals, "Fn::Contains": contains } = condition as Readonly<Record<string, readonly Json[]>>;
  const value = (json: Json): Json | undefined => (typeof json === "string" ? json : valueOf((json as { readonly Ref: string }).Ref));
  if (not) return !holds(not[0]!, valueOf);
  if (contains) return (contains[0] as readonly Json[]).includes(value(contains[1]!)!);
  if (!equals) throw new Error(`Not a condition that is known here: ${JSON.stringify(condition)}`);
  return value(equals[0]!) === value(equals[1]!);
}

/** Returns a text with values put in, or the join that the CDK makes of it, if it names other resources. */
function joined(text: string, values: Values): Json {
  const parts = text.split(/\$\{([\w:.]+)\}/).map((part, index): Json => {
    if (index % 2 === 0) return part;
    return values[part] ?? (part.includes(".") ? { "Fn::GetAtt": part.split(".") } : { Ref: part });
  });
  const merged = parts.reduce<readonly Json[]>((before, part) => {
    const last = before.at(-1);
    return typeof part === "string" && typeof last === "string" ? [...before.slice(0, -1), last + part] : [...before, part];
  }, []);
  const filled = merged.filter((part) => part !== "");
  return filled.every((part) => typeof part === "string") ? filled.join("") : { "Fn::Join": ["", filled] };
}

/** Returns the files of a zip file, read from its directory. */
export function unzipped(zip: Buffer): Readonly<Record<string, Buffer>> {
  const end = zip.lastIndexOf("PK\u0005\u0006", undefined, "latin1");
  const files: Record<string, Buffer> = {};
  for (let entry = zip.readUInt32LE(end + 16), left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((at) => zip.readUInt16LE(entry + at)) as [number, number, number];
    const body = zip.readUInt32LE(entry + 42);
    const from = body + 30 + zip.readUInt16LE(body + 26) + zip.readUInt16LE(body + 28);
    const packed = zip.subarray(from, from + zip.readUInt32LE(entry + 20));
    files[zip.toString("utf8", entry + 46, entry + 46 + nameLength)] = inflateRawSync(packed);
    entry += 46 + nameLength + extraLength + commentLength;
  }
  return files;
}
