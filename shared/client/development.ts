/** The client for development: it also warns of what requests send in vain. Bundlers take it by themselves. */
import type { ContentType } from "../api/catalog.ts";
import { readQuery } from "../api/request.ts";
import { findIgnored } from "../api/warning.ts";
import type { Target } from "./asked.ts";
import { openClient } from "./reads.ts";
import type * as Public from "./types.ts";

export { ApiError } from "./transport.ts";

type Reads = Pick<Public.Client<object>, "schema">;

export function createClient(options: Public.Options): unknown {
  const { appKey, fetch = globalThis.fetch as never } = options;
  const types = new Map<string, Promise<ContentType | undefined>>();

  /** Reads the type once. Without it, less can be said. */
  function readType(slug: string): Promise<ContentType | undefined> {
    const read = () => (client as unknown as Reads).schema(slug) as Promise<unknown> as Promise<ContentType>;
    const type = types.get(slug) ?? read().catch(() => undefined);
    types.set(slug, type);
    return type;
  }

  async function inspect({ route, path, query }: Target): Promise<void> {
    const type = route.kind === "catalog" || route.kind === "schema" ? undefined : await readType(route.slug);
    const request = { kind: "request", appKey, route, ...readQuery(query.slice(1), route.kind) } as const;
    for (const { parameter, why } of findIgnored(path + query, request, type))
      console.warn(`${path + query}: ${parameter} has no effect: ${why}`);
  }

  const fetchAndWarn: NonNullable<Public.Options["fetch"]> = async (url, init) => {
    const response = await fetch(url, init);
    const warning = response.headers.get("X-Request-Warning");
    if (warning) console.warn(`${url}: ${warning}`);
    return response;
  };

  const client = openClient({ ...options, fetch: fetchAndWarn }, inspect);
  return client;
}
