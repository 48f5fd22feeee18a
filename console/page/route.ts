/** The address of a view: its place and its filters, so that a reload, a bookmark and the back button keep both. */
import { useEffect, useState } from "preact/hooks";

/** The views. */
export const PLACES = ["locks", "runs", "limits", "activity"] as const;
/** A view. */
export type Place = (typeof PLACES)[number];

/** A view with its key and its filters. */
export interface Route {
  readonly place: Place;
  readonly key?: string;
  readonly query: URLSearchParams;
}

/** Reads the route from the hash of the address; an unknown one is the list of locks. */
export function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [place = "", key = ""] = path.split("/", 2);
  const view = PLACES.find((name) => name === place) ?? "locks";
  return {
    place: view,
    ...(key !== "" && view !== "activity" && { key: decode(key) }),
    query: new URLSearchParams(query),
  };
}

/** Returns the address of a route. Empty filters are left out. */
export function hrefOf(place: Place, key?: string, query: Readonly<Record<string, string>> = {}): string {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${place}${key === undefined ? "" : `/${encodeURIComponent(key)}`}${parameters === "" ? "" : `?${parameters}`}`;
}

/** Returns the filters of a route as its address has them, without those that have their value of `initial`. */
export function filtersOf<F extends Readonly<Record<string, string>>>({ place, key, query }: Route, initial: F) {
  const filters = mapped(initial, (value, name) => query.get(name) ?? value);
  /** Changes some of the filters, without a new entry in the history. */
  const set = (changed: Partial<F>): void => {
    const parameters = mapped({ ...filters, ...changed }, (value, name) => (value === initial[name] ? "" : value));
    history.replaceState(undefined, "", hrefOf(place, key, parameters));
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  return { filters, set };
}

function mapped<F extends Readonly<Record<string, string>>>(filters: F, change: (value: string, name: string) => string): F {
  return Object.fromEntries(Object.entries(filters).map(([name, value]) => [name, change(value, name)])) as F;
}

/** The address at which each list was last seen, with its filters. */
const lists: Partial<Record<Place, string>> = {};

/** Returns the address of a list as it was last seen. */
export function listHref(place: Place): string {
  return lists[place] ?? hrefOf(place);
}

function present(): Route {
  const route = routeOf(location.hash);
  if (route.key === undefined) lists[route.place] = hrefOf(route.place, undefined, Object.fromEntries(route.query));
  return route;
}

/** Returns the present route. */
export function useRoute(): Route {
  const [route, setRoute] = useState(present);
  useEffect(() => {
    const change = (): void => setRoute(present());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
