/** What writing costs: an import, single edits and a large one by SQL, and the same on the table by hand. */
import { join } from "node:path";
import type { Client } from "pg";
import { withClient } from "../client.ts";
import { articleOf, peopleOf, searchedText } from "../live/article.ts";
import { writeBundle } from "../live/bundle.ts";
import { HAND_INDEXES, HAND_TABLES, insertArticles } from "../live/hand-table.ts";
import type { LiveOptions } from "../live-options.ts";
import type { Found, Noted } from "../live-result.ts";
import { runPrecast } from "../precast.ts";
import { spreadOf } from "../spread.ts";
import { percentile } from "../traffic.ts";
import type { Work } from "../work.ts";

const EDITS = 200;
const MANY = 10_000;
const RUNS = 3;
const BATCH = 500;

export async function writesCase(work: Work<LiveOptions>): Promise<Found> {
  const { place, options, say } = work;
  const url = await place.database("live_writes");
  const source = ["--database-url", url];
  await runPrecast(["migrate", ...source], place.folder);
  const notes = [await importAll(work, url, source)];
  await withClient(url, async (client) => {
    await client.query("VACUUM ANALYZE");
    say("writes: single edits");
    for (const edit of EDIT_KINDS) notes.push(await editSingly(client, options.entries, edit));
    say("writes: large edits");
    notes.push(await editMany(client, options.entries));
  });
  return { reads: [], notes, faults: [] };
}

async function importAll({ place, options, say }: Work<LiveOptions>, url: string, source: readonly string[]) {
  const folder = join(place.folder, "bundle");
  say(`writes: writing a bundle of ${options.entries.toLocaleString("en")} articles`);
  const entries = writeBundle(folder, options.entries);
  say("writes: importing");
  const { seconds } = await runPrecast(["import", folder, ...source], place.folder);
  say("writes: the same by hand");
  const byHand = await withClient(url, (client) => insertAll(client, options.entries));
  return note(
    `import of ${entries.toLocaleString("en")} entries`,
    `${Math.round(entries / seconds).toLocaleString("en")} entries/s`,
    `${Math.round(options.entries / byHand).toLocaleString("en")} rows/s inserted by hand, indexes in place`,
    "≥ 5,000 entries/s",
  );
}

/** Gives the seconds that the statements took. */
async function insertAll(client: Client, count: number): Promise<number> {
  await client.query(HAND_TABLES);
  await client.query(HAND_INDEXES);
  let seconds = 0;
  for (let first = 0; first < count; first += BATCH) {
    const length = Math.min(BATCH, count - first);
    const some = Array.from({ length }, (_, index) => articleOf(first + index, peopleOf(count)));
    const begun = performance.now();
    await insertArticles(client, some);
    seconds += (performance.now() - begun) / 1_000;
  }
  return seconds;
}

// ---- Edits

type Statement = { readonly text: string; readonly values: unknown[] };
type Edit = {
  readonly what: string;
  readonly ours: (number: number, total: number) => Statement;
  readonly theirs: (number: number, total: number) => Statement;
};

const TYPE = "(SELECT id FROM precast.content_types WHERE slug = 'articles')";
const OURS = `UPDATE precast.entries SET data = data || $2::jsonb, updated_at = now() WHERE content_type_id = ${TYPE} AND id = $1`;

const EDIT_KINDS: readonly Edit[] = [
  {
    what: "title and price",
    ours: (number, total) => ({ text: OURS, values: [idOf(number, total), JSON.stringify(newValues(number))] }),
    theirs: (number, total) => {
      const { title, price } = newValues(number);
      const words = searchedText(title, articleOf(number, peopleOf(total)).body);
      const text = `WITH edited AS (
          UPDATE hand.articles SET title = $2, price = $3, updated_at = now() WHERE id = $1 RETURNING id)
        UPDATE hand.article_words AS w SET words = $4 FROM edited WHERE w.id = edited.id`;
      return { text, values: [idOf(number, total), title, price, words] };
    },
  },
  {
    what: "price alone",
    ours: (number, total) => ({ text: OURS, values: [idOf(number, total), JSON.stringify({ price: number / 4 })] }),
    theirs: (number, total) => ({
      text: "UPDATE hand.articles SET price = $2, updated_at = now() WHERE id = $1",
      values: [idOf(number, total), number / 4],
    }),
  },
];

function idOf(number: number, total: number): string {
  return articleOf(number, peopleOf(total), 1).id;
}

function newValues(number: number) {
  return { title: `Edited ${number} anew`, price: number / 2 };
}

/** One after the other, and both sides in turn. */
async function editSingly(client: Client, total: number, { what, ours, theirs }: Edit): Promise<Noted> {
  const took: Record<"ours" | "theirs", number[]> = { ours: [], theirs: [] };
  for (let edit = 0; edit < EDITS; edit++) {
    const number = Math.floor(((edit + 0.5) * total) / EDITS);
    took.ours.push(await timed(client, ours(number, total)));
    took.theirs.push(await timed(client, theirs(number, total)));
  }
  return note(`an edit: ${what}`, editText(took.ours), editText(took.theirs), "< 5 ms");
}

function editText(took: readonly number[]): string {
  return `${percentile(took, 0.5).toFixed(2)} ms, p99 ${percentile(took, 0.99).toFixed(2)} ms`;
}

/** Gives milliseconds. */
async function timed(client: Client, statement: Statement): Promise<number> {
  const begun = performance.now();
  const { rowCount } = await client.query(statement);
  if (rowCount === 0) throw new Error(`Nothing was edited: ${statement.text}`);
  return performance.now() - begun;
}

async function editMany(client: Client, total: number): Promise<Noted> {
  const count = Math.min(MANY, total);
  const ids = Array.from({ length: count }, (_, number) => idOf(number, total));
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let run = 1; run <= RUNS; run++) {
    const text = `UPDATE precast.entries SET data = data || jsonb_build_object('price', $2::int)
      WHERE content_type_id = ${TYPE} AND id = ANY ($1::uuid[])`;
    ours.push(await timed(client, { text, values: [ids, run] }));
    const byHand = "UPDATE hand.articles SET price = $2::int WHERE id = ANY ($1::uuid[])";
    theirs.push(await timed(client, { text: byHand, values: [ids, run] }));
  }
  const seconds = (took: readonly number[]) => `${(spreadOf(took).median / 1_000).toFixed(2)} s`;
  return note(`one edit of ${count.toLocaleString("en")} prices`, seconds(ours), seconds(theirs), "");
}

function note(what: string, precast: string, byHand: string, aim: string): Noted {
  return { case: "writes", what, precast, against: byHand, aim };
}
