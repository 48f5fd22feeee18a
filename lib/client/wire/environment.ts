/** The SDK's environment: its variables, and the warnings of the process. Only this file of `lib` reaches them. */
import { InvalidRequestError } from "./errors.js";

/** The variables that can replace an option. */
export type Variable =
  | "HOLDFAST_URL"
  | "HOLDFAST_TABLE"
  | "HOLDFAST_NAMESPACE"
  | "HOLDFAST_REGIONS"
  | "AWS_REGION"
  | "AWS_DEFAULT_REGION"
  | "AWS_LAMBDA_FUNCTION_NAME";

type Variables = Readonly<Record<string, string | undefined>>;

const VARIABLES = new Proxy<Variables>(
  {},
  {
    get(_, name) {
      const { process } = globalThis as { readonly process?: { readonly env: Variables } };
      try {
        return process?.env[String(name)];
      } catch {
        return undefined; // Deno, without the permission.
      }
    },
  },
);

/** Returns all variables, as they are at each read. One that this process may not read is not set; none is where there is no environment. */
export function environment(): Variables {
  return VARIABLES;
}

/** Returns the variable's value; undefined if it is not set or empty. */
export function fromEnvironment(name: Variable): string | undefined {
  const value = environment()[name];
  return value === "" ? undefined : value;
}

/** Returns the option, or else the variable. @throws InvalidRequestError naming both if neither is set. */
export function optionOrVariable(option: string, own: string | undefined, name: Variable): string {
  const value = own ?? fromEnvironment(name);
  if (value === undefined || value === "")
    throw new InvalidRequestError(`${option}: give createLockClient the option or set ${name}`, option);
  return value;
}

/** Writes a warning of the process, a line on stderr unless the application listens for `warning`; nothing where there is no process. */
export function warnOfProcess(text: string): void {
  const { process } = globalThis as { readonly process?: { emitWarning?(text: string, type: string): void } };
  process?.emitWarning?.(text, "HoldfastWarning");
}
