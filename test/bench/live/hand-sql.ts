/**
 * The hand-written SQL, one statement for each kind of request. Those of lists and searches give a page as JSON text
 * and the total: `$1` is LIMIT and `$2` OFFSET, and the values of the request follow. For entries, `$1` is the id.
 */

export type Statement = {
  readonly text: string;
  /** Planned anew for every request: a generic plan is bad for patterns. Elsewhere it saves a third of the time. */
  readonly custom: boolean;
};

const INSTANT = '\'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"\'';
const stamp = (name: string, table = "a") => `to_char(${table}.${name} AT TIME ZONE 'UTC', ${INSTANT}) AS ${name}`;
const stamps = (table?: string) =>
  ["published_at", "created_at", "updated_at"].map((name) => stamp(name, table)).join(", ");

const FIELDS = `a.id, a.title, a.code, a.topic, a.section, a.price, a.featured, a.day, a.tags, a.author_id, a.contributors`;
const ITEM = `${FIELDS}, ${stamps()}`;
const NEWEST = "a.published_at DESC, a.id";

function page(items: string): string {
  return `(SELECT coalesce(json_agg(item), '[]')::text FROM (${items}) AS item) AS data`;
}

function list(where: string, order: string = NEWEST, item: string = ITEM): string {
  return `SELECT (SELECT count(*)::int FROM hand.articles AS a WHERE ${where}) AS total,
  ${page(`SELECT ${item} FROM hand.articles AS a WHERE ${where} ORDER BY ${order} LIMIT $1 OFFSET $2`)}`;
}

/** For conditions that are slow to evaluate: matches are found once, and then counted and paged. */
function listOnce(where: string): string {
  return `WITH matched AS MATERIALIZED (SELECT a.id, a.published_at FROM hand.articles AS a WHERE ${where})
  ${pageOfMatched(ITEM, "found.published_at DESC, found.id")}`;
}

function pageOfMatched(item: string, order: string): string {
  return `SELECT (SELECT count(*)::int FROM matched) AS total,
  ${page(`SELECT ${item} FROM (SELECT * FROM matched AS found ORDER BY ${order} LIMIT $1 OFFSET $2) AS found
  JOIN hand.articles AS a USING (id) ORDER BY ${order}`)}`;
}

/** Walks an index to the page, and fetches the rows of the page alone. */
const DEEP = `SELECT (SELECT count(*)::int FROM hand.articles) AS total,
  ${page(`SELECT ${ITEM} FROM (
    SELECT a.id, a.title, a.published_at FROM hand.articles AS a ORDER BY a.title, ${NEWEST} LIMIT $1 OFFSET $2) AS found
  JOIN hand.articles AS a USING (id) ORDER BY found.title, found.published_at DESC, id`)}`;

const PERSON = `p.id, p.name, p.country, p.born, p.bio, ${stamps("p")}`;

function entry(author: string, contributors: string): string {
  return `SELECT row_to_json(entry)::text AS data FROM (
    SELECT a.id, a.title, a.code, a.topic, a.section, a.price, a.featured, a.day, a.tags,
      ${author} AS author_id, ${contributors} AS contributors, a.body, ${stamps()}
    FROM hand.articles AS a WHERE a.id = $1) AS entry`;
}

const AUTHOR = `(SELECT row_to_json(person) FROM (
  SELECT ${PERSON} FROM hand.people AS p WHERE p.id = a.author_id) AS person)`;
const CONTRIBUTORS = `(SELECT coalesce(json_agg(person), '[]') FROM (
  SELECT ${PERSON} FROM unnest(a.contributors) WITH ORDINALITY AS named(id, place)
  JOIN hand.people AS p ON p.id = named.id ORDER BY named.place) AS person)`;

// ---- Searches

type Search = { readonly where?: string; readonly order?: string };

const RELEVANCE = "found.complete DESC, found.occurrences DESC, found.published_at DESC, found.id";

/** The words are `$3` and following. */
function search(words: number, { where, order }: Search = {}): string {
  const places = Array.from({ length: words }, (_, index) => `$${index + 3}::text`);
  const found = places.map((place) => `w.words LIKE '%' || ${place} || '%'`);
  const { columns, from } = order === undefined ? ranksOf(places) : { columns: "a.price", from: "" };
  const articles = where === undefined && order === undefined ? "" : "JOIN hand.articles AS a USING (id)";
  return `WITH matched AS MATERIALIZED (
    SELECT w.id, w.published_at, ${columns} FROM hand.article_words AS w ${articles} ${from}
    WHERE ${[...found, ...(where === undefined ? [] : [where])].join(" AND ")})
  ${pageOfMatched(`a.id, a.title, a.topic, ${stamp("published_at")}`, order ?? RELEVANCE)}`;
}

/** Entries with all words as full words come first; within both groups, those in which the words occur more often. */
function ranksOf(words: readonly string[]): { readonly columns: string; readonly from: string } {
  const full = words.map((word, index) => `${occurrences(`(' ' || ${word} || ' ')`)} AS full_${index}`);
  const complete = words.map((_, index) => `full_${index} > 0`).join(" AND ");
  const sum = words.map((_, index) => `full_${index}`).join(" + ");
  const partial = words.map(occurrences).join(" + ");
  return {
    columns: `${complete} AS complete, CASE WHEN ${complete} THEN ${sum} ELSE ${partial} END AS occurrences`,
    // OFFSET 0 keeps the subquery from being inlined, so that each word is counted once.
    from: `CROSS JOIN LATERAL (SELECT ${full.join(", ")} OFFSET 0) AS counted`,
  };
}

/** Counted in bytes, which is faster than in characters and gives the same number. */
function occurrences(word: string): string {
  return `(octet_length(w.words) - octet_length(replace(w.words, ${word}, ''))) / octet_length(${word})`;
}

// ---- By name

const BY_PRICE = "a.price DESC NULLS LAST, a.published_at DESC, a.id";

const named = (text: string): Statement => ({ text, custom: false });
const custom = (text: string): Statement => ({ text, custom: true });

export const ENTRIES: Readonly<Record<string, Statement>> = {
  author: named(entry(AUTHOR, "a.contributors")),
  contributors: named(entry("a.author_id", CONTRIBUTORS)),
};

export const LISTS: Readonly<Record<string, Statement>> = {
  eq: named(list("a.topic = $3")),
  two: named(list("a.topic = $3 AND a.section = $4")),
  in_range: named(list("a.topic = ANY (string_to_array($3, ',')) AND a.price >= $4", BY_PRICE)),
  contains: custom(listOnce("a.title_lower LIKE '%' || $3 || '%'")),
  starts_with: custom(listOnce("a.title_lower LIKE $3 || '%'")),
  neq: named(list("a.section IS DISTINCT FROM $3")),
  code: named(list("a.code = $3")),
  tag: named(list("a.tags @> ARRAY[$3]")),
  by_title: named(DEEP),
  fields: named(list("true", NEWEST, `a.id, a.title, a.topic, a.price, ${stamp("published_at")}`)),
};

/** For one word or two, and for one word with a filter or a sort. */
export const SEARCHES: Readonly<Record<string, Statement>> = {
  one: custom(search(1)),
  two: custom(search(2)),
  topic: custom(search(1, { where: "a.topic = $4" })),
  by_price: custom(search(1, { order: "found.price DESC NULLS LAST, found.published_at DESC, found.id" })),
};
