/** The five reads of the API for an assistant: what each can be asked, what it answers, what that cost, and what is free. */
import type { ContentType } from "../../shared/api/catalog.ts";
import { findNearestFree } from "../../shared/api/nearest-free.ts";
import { readRequest } from "../../shared/api/request.ts";
import { ApiError, createClient } from "../../shared/client/client.ts";
import type { AnyRequest, AnyType, CatalogType, Price, Schema } from "../../shared/client/types.ts";
import { formatCounted } from "../../shared/text.ts";

export type ReadName = "catalog" | "schema" | "list" | "get" | "search";

/** The texts of an answer: what it cost, then the answer itself as JSON; or why there is none. */
export type ReadResult = { readonly texts: readonly string[]; readonly isError: boolean };

export type Reads = {
  readonly types: readonly CatalogType[];
  readonly descriptions: Readonly<Record<ReadName, string>>;
  readonly read: (request: AnyRequest) => Promise<ReadResult>;
};

export type ReadsOptions = {
  readonly url: string;
  readonly appKey: string;
  /** How many counted requests may be sent. Null means any number. */
  readonly budget: number | null;
};

/** Reads the catalog and all schemas, which is free. Throws ApiError when the API refuses that. */
export async function openReads({ url, appKey, budget }: ReadsOptions): Promise<Reads> {
  let spent = 0;
  // No request is repeated, because each repetition of a counted one counts.
  const api = createClient<{ [slug: string]: AnyType }>({
    url,
    appKey,
    retries: 0,
    onRequest: (sent) => {
      if (sent.counted) spent++;
    },
  });
  const types = await api.catalog();
  const schemas = new Map<string, Schema>();
  for (const { slug } of types) schemas.set(slug, await api.schema(slug));

  async function read(request: AnyRequest): Promise<ReadResult> {
    const before = spent;
    try {
      const price = await api.price(request);
      const body = await send(request);
      return { texts: [describeCost(price, before, request), JSON.stringify(body)], isError: false };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const cheaper = error.code === "COUNTED" ? ` ${describeCheaper(await api.price(request), request)}` : "";
      const cost = spent > before ? ` It was counted. ${describeBudget()}` : "";
      return { texts: [`${error.code}: ${error.message}${cost}${cheaper}`], isError: true };
    }
  }

  function send({ type, id, q, ...query }: AnyRequest): Promise<unknown> {
    const counted = budget !== null && spent >= budget ? ("refuse" as const) : ("allow" as const);
    const asked = { ...query, counted };
    if (type === undefined) return id === undefined ? api.catalog(asked) : api.schema(id, asked);
    const collection = api.type(type);
    if (q !== undefined) return collection.search(q, asked);
    return id === undefined ? collection.list(asked) : collection.get(id, asked);
  }

  function describeCost(price: Price, before: number, request: AnyRequest): string {
    if (spent === before)
      return price.free === null ? `Free. ${price.rule}` : `Free, as ${price.free}, which has the same answer.`;
    return `Counted. ${price.rule} ${describeBudget()} ${describeCheaper(price, request)}`;
  }

  const describeBudget = () =>
    `${formatCounted(spent, "counted request")} so far${budget === null ? "" : `, of ${budget} that are allowed`}.`;

  /** Schemas do not tell all of a content type, but all that prices depend on. */
  function describeCheaper({ target }: Price, { type: slug = "" }: AnyRequest): string {
    const request = readRequest({ method: "GET", target, appKey });
    const schema = schemas.get(slug);
    if (request.kind !== "request" || schema === undefined) return "";
    const type = { ...schema, default_sort: null } as unknown as ContentType;
    const nearest = findNearestFree(request, type);
    return nearest === null
      ? `Cheaper: a list with one equality filter (${schema.filterable_fields.join(", ") || "there is none"}) is free.`
      : `Cheaper: ${nearest.target} is free${nearest.same ? "" : ", with another answer"}.`;
  }

  // One at a time: two at once could both find that one more request is allowed.
  let last: Promise<unknown> = Promise.resolve();
  return {
    types,
    descriptions: describeReads([...schemas.values()], budget),
    read: (request) => {
      const result = last.then(() => read(request));
      last = result.catch(() => {});
      return result;
    },
  };
}

// Describes each read by the schemas.

/** Characters, of which an assistant reads all with each question. Types for which there is no space are only named. */
const MAX_DESCRIBED = 12_000;

function describeReads(schemas: readonly Schema[], budget: number | null): Record<ReadName, string> {
  const limit = budget === null ? "" : ` At most ${formatCounted(budget, "counted request")} in all.`;
  const each = (describe: (schema: Schema) => string) => describeEach(schemas, describe);
  return {
    catalog: "The content types, with how many entries each has and the names of its fields. Free.",
    schema: "One content type: its fields with their types and labels. Free.",
    list: `Entries of one content type, page by page, without rich text unless it is named in fields. Free: no parameter but page; one equality filter alone; one sort alone. Everything else is counted.${limit} Content types:\n${each(describeList)}`,
    get: `One entry with all of its fields. Free; with populate, which shows related entries in place of their ids, counted.${limit} Relations:\n${each(describeRelations)}`,
    search: `Full-text search in one content type. Always counted.${limit} Searched fields:\n${each(describeSearch)}`,
  };
}

function describeEach(schemas: readonly Schema[], describe: (schema: Schema) => string): string {
  const lines: string[] = [];
  let left = MAX_DESCRIBED;
  for (const schema of schemas) {
    const line = `- ${schema.slug}: ${describe(schema)}`;
    left -= line.length;
    lines.push(left < 0 ? `- ${schema.slug}: see its schema` : line);
  }
  return lines.join("\n");
}

function describeList(schema: Schema): string {
  const fields = schema.fields.map(({ name, type }) => `${name} (${type})`);
  const what = schema.description === "" ? schema.name : schema.description;
  const parts = [
    what,
    `fields ${listNames(fields)}`,
    `filter by ${listNames(schema.filterable_fields)}`,
    `sort by ${listNames([...new Set([...schema.sortable_fields, "published_at", "created_at", "updated_at"])])}`,
  ];
  return parts.filter((part) => part !== "").join("; ");
}

function describeRelations({ fields }: Schema): string {
  return listNames(fields.flatMap(({ name, type }) => (type === "relation" ? name : [])));
}

function describeSearch({ searchable_fields: names }: Schema): string {
  return listNames(names);
}

function listNames(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}
