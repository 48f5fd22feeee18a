/** Objects whose optional members all have to be named where they are built, so that a new one isn't forgotten on its way. */

/** `T` with each optional member named, if only as undefined. */
export type Named<T> = { readonly [Member in keyof Required<T>]: T[Member] };

/** `T` with the members that may be undefined as optional ones. */
type Given<T> = { [Member in keyof T as undefined extends T[Member] ? never : Member]: T[Member] } & {
  [Member in keyof T as undefined extends T[Member] ? Member : never]?: Exclude<T[Member], undefined>;
};

/** Returns only the members that are defined. */
export function given<T extends object>(members: T): Given<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<T>;
}

/** Returns the members that have the names of `names`, each of them named. */
export function pick<From extends object, Name extends keyof From>(
  from: From,
  names: Readonly<Record<Name, unknown>>,
): Named<Pick<From, Name>> {
  return Object.fromEntries(Object.keys(names).map((name) => [name, from[name as Name]])) as Named<Pick<From, Name>>;
}
