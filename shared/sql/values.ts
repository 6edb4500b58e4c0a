/** Collects the values of a statement while its SQL is written. */
import type { Value } from "../query.ts";
import type { Bind } from "./where.ts";

/** The values of a statement; `bind` adds one and returns its placeholder. */
export type Values = { readonly all: Value[]; readonly bind: Bind };

export function collectValues(...first: Value[]): Values {
  const all = [...first];
  return { all, bind: (value) => `$${all.push(value)}` };
}
