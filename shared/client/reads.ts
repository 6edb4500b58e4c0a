/** The reads of an app: prices each request, and sends the free one of two that have the same answer. */
import { type Asked, type Target, writeTarget } from "./asked.ts";
import { mark } from "./marking.ts";
import { openPrices } from "./prices.ts";
import { ApiError, type Body, openTransport } from "./transport.ts";
import type * as Public from "./types.ts";

/** `inspect` is told each target before it is priced. */
export function openClient(options: Public.Options, inspect?: (asked: Target) => unknown) {
  const send = openTransport(options, () => prices.forget());
  const prices = openPrices(send, options);

  async function ask(asked: Asked): Promise<Body> {
    const { counted: mode = options.counted ?? "allow", signal } = asked;
    const asIs = writeTarget(asked);
    await inspect?.(asIs);
    const { price, isAnsweredBy } = await prices.find(asIs);
    const { target, counted, rule, free } = price;
    if (free) {
      const body = await send(free, false, signal);
      if (isAnsweredBy(body)) return body;
      prices.forget();
    }
    if (counted && mode !== "allow") {
      const message = `${target} is counted. ${rule}`;
      if (mode === "refuse") throw new ApiError({ status: 0, code: "COUNTED", message });
      console.warn(message);
    }
    return send(target, counted, signal);
  }

  function openCollection(type: string) {
    const list = (query?: Asked) => ask({ ...query, type });
    async function* pages(query?: Asked) {
      for (let page = query?.page ?? 1, last = page, total = 0; page <= last; page++) {
        const answer = await list({ ...query, page });
        const { meta } = answer;
        last = meta.last_page;
        // As many entries as are gone may have moved to pages that were read already: those are read again.
        if (meta.total < total) page = Math.max(0, page - 1 - Math.ceil((total - meta.total) / meta.per_page));
        else yield answer;
        total = meta.total;
      }
    }
    return {
      list,
      mark,
      search: (q: string, query?: Asked) => ask({ ...query, type, q }),
      get: async (id: string, query?: Asked) => (await ask({ ...query, type, id })).data,
      pages,
      async *all(query?: Asked) {
        const seen = new Set();
        for await (const { data } of pages(query))
          for (const item of data) {
            if (!seen.has(item.id)) yield item;
            seen.add(item.id);
          }
      },
    };
  }

  const reads: Record<string, unknown> = {
    // Slugs may be the names of an object's own methods.
    __proto__: null,
    type: openCollection,
    price: async (asked: Asked) => (await prices.find(writeTarget(asked))).price,
    catalog: async (query?: Asked) => (await ask({ ...query })).data,
    schema: async (id: string, query?: Asked) => (await ask({ ...query, id })).data,
  };
  return new Proxy(reads, {
    get(own, slug: string) {
      own[slug] ??= openCollection(slug);
      return own[slug];
    },
  });
}
