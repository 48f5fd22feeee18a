/** The address of a view: its place and its filters, so that a reload, a bookmark and the back button keep both. */
import { useEffect, useState } from "preact/hooks";

/** The views. */
export const PLACES = ["locks", "runs", "activity"] as const;
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
  const known = PLACES.find((name) => name === place) ?? "locks";
  return { place: known, ...(key !== "" && known !== "activity" && { key: decode(key) }), query: new URLSearchParams(query) };
}

/** Returns the address of a route. Empty filters are left out. */
export function hrefOf(place: Place, key?: string, query: Readonly<Record<string, string>> = {}): string {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${place}${key === undefined ? "" : `/${encodeURIComponent(key)}`}${given === "" ? "" : `?${given}`}`;
}

/** Goes to an address without a new entry in the history. */
export function replaceRoute(href: string): void {
  history.replaceState(undefined, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Returns the present route. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const change = (): void => setRoute(routeOf(location.hash));
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
