/** The address of what the page shows: `#<view>?<parameters>`, so that it can be kept, sent, and gone back to. */
import { useEffect, useState } from "preact/hooks";

export type Route = { readonly view: string; readonly params: URLSearchParams };

function readRoute(): Route {
  const [view = "", query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  return { view, params: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const follow = () => setRoute(readRoute());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

/** Parameters that are empty are left out. */
export function writeHash(view: string, params: URLSearchParams | Readonly<Record<string, string>>): string {
  const given = [...new URLSearchParams(params)].filter(([, value]) => value !== "");
  return `#${view}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
}

/** Changes the address without an entry in the history of the browser, as for each letter of a text that is typed. */
export function replaceRoute(view: string, params: Readonly<Record<string, string>>): void {
  history.replaceState(null, "", writeHash(view, params));
}
