/**
 * Finds the requests whose price a change of content types alters, by the code that prices requests, and how many of them
 * the ledger has. It has counted requests only, and of these the fields that they use, not how.
 */
import type { App, ContentType } from "../../shared/api/catalog.ts";
import { priceRequest } from "../../shared/api/pricing.ts";
import { readRequest } from "../../shared/api/request.ts";
import { sumCounts, type UsedRow } from "../usage.ts";

export type PriceChange = {
  readonly app: string;
  readonly type: string;
  /** Path and query; … stands for any value. */
  readonly request: string;
  readonly becomes: "free" | "counted";
  /**
   * Counted requests of the ledger. Where `becomes` is free, those that used the field alone and were refused: at most so
   * many are free from now on. Where it is counted, those that used the field and were answered: from now on they are
   * refused. Those that were free are in no ledger.
   */
  readonly requests: number;
};

export function findPriceChanges(
  before: readonly App[],
  after: readonly App[],
  ledger: readonly UsedRow[],
): PriceChange[] {
  return after.flatMap((app) => {
    const old = before.find(({ key }) => key === app.key);
    if (old === undefined) return [];
    const slugs = [...new Set([...old.types, ...app.types].map(({ slug }) => slug))].sort();
    return slugs.flatMap((slug) => {
      const [was, is] = [old, app].map(({ types }) => types.find((type) => type.slug === slug));
      return compareTypes(app.key, slug, was, is, ledger);
    });
  });
}

function compareTypes(
  app: string,
  slug: string,
  was: ContentType | undefined,
  is: ContentType | undefined,
  ledger: readonly UsedRow[],
): PriceChange[] {
  const names = (type: ContentType | undefined) => [
    ...(type?.filterable_fields ?? []),
    ...(type?.sortable_fields ?? []),
  ];
  const fields = [...new Set([...names(was), ...names(is)])].sort();
  const forms = fields.flatMap((field) => [`filter[${field}]=…`, `sort=${field}`].map((query) => ({ field, query })));
  return forms.flatMap(({ field, query }): PriceChange[] => {
    const request = `/api/v1/${slug}?${query}`;
    const [counted, counts] = [was, is].map((type) => isCounted(app, request, type));
    if (counted === counts) return [];
    const rows = ledger.filter((row) => row.app === app && row.type === slug && row.shape === "list");
    const used = counts
      ? rows.filter(({ status, fields }) => status === 200 && fields.split(",").includes(field))
      : rows.filter(({ status, fields }) => status === 400 && fields === field);
    return [{ app, type: slug, request, becomes: counts ? "counted" : "free", requests: sumCounts(used) }];
  });
}

function isCounted(appKey: string, target: string, type: ContentType | undefined): boolean {
  const request = readRequest({ method: "GET", target, appKey });
  return request.kind === "request" && priceRequest(request, type).counted;
}
