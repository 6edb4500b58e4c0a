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

// Collects the values of a statement while its SQL is written.

/** The values of a statement; `bind` adds one and returns its placeholder. */
export type Values = { readonly all: Value[]; readonly bind: Bind };

export function collectValues(...first: Value[]): Values {
  const all = [...first];
  return { all, bind: (value) => `$${all.push(value)}` };
}

// SQL of the content types that a request may see. It names the app, so that no query sees the data of another one.

/** The published types of the app `$1`. */
export const TYPES_OF_APP = `precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
  WHERE app.key = $1`;

/** The published type `$2` of that app: one row, or none. */
export const TYPE_OF_APP = `${TYPES_OF_APP} AND type.slug = $2`;

/** Adds a value to the statement and returns its placeholder, such as `$3`. */
export type Bind = (value: Value) => string;

/**
 * Up to this many values of one condition get a placeholder each. More are sent as one array, so that the text of the
 * statement is the same for any number of them.
 */
export const MAX_PLACEHOLDERS = 8;
