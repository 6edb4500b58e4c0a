/** Says how to change counted requests so that they are free with the same answer. Reads texts of shared/saving.ts. */

const ADVICE: Readonly<Record<string, string | undefined>> = {
  per_page: "which is the default",
  page: "which is the first page anyway",
  sort: "which is the default order",
  fields: "which names all fields that a list shows",
  populate: "which names no relation",
};
const REWRITES: Readonly<Record<string, string | undefined>> = {
  "filter[][in]": "write filter[field]=value instead of filter[field][in]=value with one value",
  "filter[][gte..lte]": "write filter[field]=value instead of gte and lte with the same value",
};

export function adviceOf(saving: string): string {
  return saving.split("&").map(adviceOfPart).join("; ");
}

/** A newer server may have recorded savings that this version does not know. */
function adviceOfPart(part: string): string {
  const reason = ADVICE[part.split("=")[0] ?? ""];
  return REWRITES[part] ?? (reason === undefined ? `drop ${part}` : `drop ${part}, ${reason}`);
}
