/**
 * A query: SQL with placeholders and its values. Values are sent and returned as text, so that PostgreSQL and the embedded
 * database give the same results.
 */
export type Value = string | null | readonly string[];
export type Row = readonly (string | null)[];

/** SQL with placeholders `$1`… and their values. Select lists cast to text. */
export type Query = {
  readonly text: string;
  readonly values: readonly Value[];
  /**
   * Set when the query is asked again with other values, so that preparing it pays. `generic`: one plan fits all
   * values. `auto`: another plan may be better for some values, and PostgreSQL decides.
   */
  readonly recurringPlan?: "generic" | "auto";
  /** Set when the query writes outside of a transaction: the embedded database checks first for free disk space. */
  readonly writes?: true;
};

export function sql(text: string, values: readonly Value[] = []): Query {
  return { text, values };
}
