/** Says how to change counted requests so that they are free with the same answer. Reads texts of shared/saving.ts. */

const ADVICE: Readonly<Record<string, string | undefined>> = {
  per_page: "it is the default",
  page: "it is the first page anyway",
  sort: "it is the default order",
  fields: "it names all that a list shows",
  populate: "it names no relation",
};
const REWRITES: Readonly<Record<string, string | undefined>> = {
  "filter[][in]": "write filter[field]=value for filter[field][in]=value, it is one value",
  "filter[][gte..lte]": "write filter[field]=value for gte and lte, they are one value",
};

export function adviceOf(saving: string): string {
  return saving.split("&").map(adviceOfPart).join("; ");
}

/** A newer server may have recorded savings that this version does not know. */
function adviceOfPart(part: string): string {
  const reason = ADVICE[part.split("=")[0] ?? ""];
  return REWRITES[part] ?? (reason === undefined ? `drop ${part}` : `drop ${part}, ${reason}`);
}
