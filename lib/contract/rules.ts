/** The parts of the client's checks of answers (checks.ts). They weigh a fraction of the schemas that the checks are made from. */
import type * as v from "valibot";
import type { CHECKED } from "./answers.js";

/** True if the value is a `T`, as far as its members are known: a newer service may send further ones. */
export type Check<T> = (value: unknown) => value is T;

export type CheckOf<Name extends keyof typeof CHECKED> = Check<FromJson<v.InferOutput<(typeof CHECKED)[Name]>>>;

/** The type of a message from JSON, in which no member is undefined. */
export type FromJson<T> = T extends object ? { readonly [Name in keyof T]: FromJson<Exclude<T[Name], undefined>> } : T;

type Rule = (value: unknown) => boolean;

export const text: Rule = (value) => typeof value === "string";
export const flag: Rule = (value) => typeof value === "boolean";
export const count: Rule = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
export const object = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const oneOf =
  (...words: readonly unknown[]): Rule =>
  (value) =>
    words.includes(value);

export const either =
  (...rules: readonly Rule[]): Rule =>
  (value) =>
    rules.some((rule) => rule(value));

export const optional =
  (rule: Rule): Rule =>
  (value) =>
    value === undefined || rule(value);

export const listOf =
  (rule: Rule): Rule =>
  (value) =>
    Array.isArray(value) && value.every((item) => rule(item));

export const mapOf =
  (rule: Rule): Rule =>
  (value) =>
    object(value) && Object.values(value).every((item) => rule(item));

export const members =
  (rules: Readonly<Record<string, Rule>>): Rule =>
  (value) =>
    object(value) && Object.entries(rules).every(([name, rule]) => rule(value[name]));
