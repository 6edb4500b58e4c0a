/** What writing costs: an import; edits by SQL, one by one, concurrent, in one statement; and the same by hand. */
import { join } from "node:path";
import type { Client } from "pg";
import { withClient } from "../client.ts";
import { articleOf, peopleOf } from "../live/article.ts";
import { writeBundle } from "../live/bundle.ts";
import { EDIT_KINDS, type Edit, idOf, type Statement, TYPE } from "../live/edits.ts";
import { HAND_INDEXES, HAND_TABLES, insertArticles } from "../live/hand-table.ts";
import type { LiveOptions } from "../live-options.ts";
import type { Found, Noted } from "../live-result.ts";
import { runPrecast } from "../precast.ts";
import { spreadOf } from "../spread.ts";
import { percentile } from "../traffic.ts";
import type { Work } from "../work.ts";

const EDITS = 200;
const WRITERS = 8;
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
    say("writes: edits at once");
    notes.push(await editAtOnce(url, options.entries));
    say("writes: large edits");
    notes.push(await editMany(client, options.entries));
    say("writes: vacuum");
    notes.push(await vacuum(client));
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

/** Returns the seconds that the statements took. */
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

/** Edits one entry after the other, on both sides in turn. */
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

/** Returns the milliseconds. */
async function timed(client: Client, statement: Statement): Promise<number> {
  const begun = performance.now();
  const { rowCount } = await client.query(statement);
  if (rowCount === 0) throw new Error(`Nothing was edited: ${statement.text}`);
  return performance.now() - begun;
}

/** No two writers edit the same entry, and all edit one type. */
async function editAtOnce(url: string, total: number): Promise<Noted> {
  const [edit] = EDIT_KINDS as [Edit];
  const perSecond: Record<"ours" | "theirs", number[]> = { ours: [], theirs: [] };
  for (let run = 0; run < RUNS; run++) {
    for (const side of ["ours", "theirs"] as const) {
      const begun = performance.now();
      await Promise.all(range(WRITERS).map((writer) => withClient(url, (client) => write(client, writer, side))));
      perSecond[side].push((WRITERS * EDITS * 1_000) / (performance.now() - begun));
    }
  }
  const rate = (rates: readonly number[]) => `${Math.round(spreadOf(rates).median).toLocaleString("en")} edits/s`;
  return note(`edits by ${WRITERS} writers at once: ${edit.what}`, rate(perSecond.ours), rate(perSecond.theirs), "");

  async function write(client: Client, writer: number, side: "ours" | "theirs"): Promise<void> {
    for (const turn of range(EDITS)) await timed(client, edit[side]((turn * WRITERS + writer) % total, total));
  }
}

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
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

/** Runs after all edits. */
async function vacuum(client: Client): Promise<Noted> {
  const seconds = async (tables: string) =>
    `${((await timed(client, { text: `VACUUM ANALYZE ${tables}`, values: [] })) / 1_000).toFixed(1)} s`;
  const ours = await seconds("precast.entries, precast.entry_words, precast.entry_counts, precast.value_counts");
  return note("VACUUM ANALYZE after these edits", ours, await seconds("hand.articles, hand.article_words"), "");
}

function note(what: string, precast: string, byHand: string, aim: string): Noted {
  return { case: "writes", what, precast, against: byHand, aim };
}
