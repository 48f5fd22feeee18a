/** The SDK's environment variables: the one place of `lib` that reads them. */
import { InvalidRequestError } from "./errors.js";

/** What may be set instead of an option. */
export type Variable = "HOLDFAST_URL" | "HOLDFAST_TABLE" | "HOLDFAST_NAMESPACE" | "AWS_REGION" | "AWS_DEFAULT_REGION";

/** The variable's value, or undefined when it isn't set or there is no environment. */
export function fromEnvironment(name: Variable): string | undefined {
  const { process } = globalThis as { readonly process?: { readonly env: Readonly<Record<string, string | undefined>> } };
  const value = process?.env[name];
  return value === "" ? undefined : value;
}

/** `given`, or the variable. @throws InvalidRequestError naming both when neither is there. */
export function givenOrSet(option: string, given: string | undefined, name: Variable): string {
  const value = given ?? fromEnvironment(name);
  if (value === undefined || value === "")
    throw new InvalidRequestError(`${option}: give createLockClient the option or set ${name}`, option);
  return value;
}
