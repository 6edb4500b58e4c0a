/** Formats values as SQL literals, for the statements that take no parameters. */
import pg from "pg";
import type { Value } from "../../sql/query.ts";

export function literalOf(value: Value): string {
  if (value === null) return "NULL";
  return pg.escapeLiteral(typeof value === "string" ? value : arrayText(value));
}

function arrayText(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}
