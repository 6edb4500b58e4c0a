/** Knows what requests cost before they are sent: by the server's own code, and by what is known of the content types. */
import { type ContentType, TIMESTAMPS } from "../api/catalog.ts";
import { findFreeEquivalent, priceRequest } from "../api/pricing.ts";
import { type ApiRequest, readQuery, writeQuery } from "../api/request.ts";
import type { Target } from "./asked.ts";
import type { Body, Send } from "./transport.ts";
import type { Model, Options, Price } from "./types.ts";

export type PricedRequest = {
  readonly price: Price;
  /** Whether the answer to the free equivalent is that to the request, as far as it tells: what is known may be old. */
  readonly isAnsweredBy: (body: Body) => boolean;
};

export type Prices = {
  readonly find: (target: Target) => Promise<PricedRequest>;
  /** What is known is old: schemas are read when they are needed next. */
  readonly forget: () => void;
};

export function openPrices(send: Send, { model }: Options): Prices {
  // Slugs may be the names of methods of objects.
  let types = { __proto__: null, ...model } as unknown as Record<string, Model[string]>;

  return {
    async find({ route, path, query }) {
      // Prices do not depend on the app key, and on no more of a type than a model or a schema has.
      const request = { route, ...readQuery(query.slice(1), route.kind) } as ApiRequest;
      let price = priceRequest(request, undefined);
      let type: ContentType | undefined;
      // What is free for a type of which nothing is known is free for all, and a search is always counted.
      if (price.counted && "slug" in route && route.kind !== "search") {
        const { slug } = route;
        types[slug] ??= (await send(`/api/v1/_schemas/${encodeURIComponent(slug)}`, false)).data as Model[string];
        type = types[slug] as unknown as ContentType;
        price = priceRequest(request, type);
      }
      const { parameters } = request;
      const { counted, rule } = price;
      const equivalent = findFreeEquivalent(request, type);
      return {
        price: {
          target: path + query,
          counted,
          rule,
          free: equivalent && path + writeQuery(equivalent.request.parameters),
        },
        isAnsweredBy: ({ data, meta }) =>
          (!parameters.per_page || meta.per_page === +parameters.per_page) &&
          (!parameters.fields || !data[0] || `${Object.keys(data[0])}` === `${listProperties(type as ContentType)}`),
      };
    },
    forget() {
      types = { __proto__: null } as never;
    },
  };
}

/** Of the items of a list, in their order. */
function listProperties({ fields }: ContentType): string[] {
  const shown = fields.filter(({ type }) => type !== "rich_text");
  return ["id", ...shown.flatMap(({ name, type }) => (type === "media" ? [name, `${name}_url`] : name)), ...TIMESTAMPS];
}
