/** A database with articles in Precast's tables, small types of other apps beside them, and the articles by hand. */
import type { Client } from "pg";
import { withClient } from "../client.ts";
import type { LiveOptions } from "../live-options.ts";
import { runPrecast, type Source } from "../precast.ts";
import type { Work } from "../work.ts";
import { articleOf, peopleOf, personOf } from "./article.ts";
import { APP, ARTICLES_TYPE, PEOPLE_TYPE } from "./definition.ts";
import { defineApp, type Entry, entryOfArticle, entryOfPerson, insertEntries } from "./entries.ts";
import { HAND_INDEXES, HAND_TABLES, insertArticles, insertPeople } from "./hand-table.ts";

export type Library = { readonly size: number; readonly url: string; readonly source: Source };

const BATCH = 500;
const NEIGHBOURS = { apps: 100, entries: 20 };
/** The version of the content. A database has it once it is complete, so that a kept one can be used again. */
const CONTENT = "1";

/** A kept database is migrated and used as it is. */
export async function openLibrary(work: Work<LiveOptions>, size: number): Promise<Library> {
  const { place, say } = work;
  const standing = await place.standing(`live_${size}`, isWhole);
  const source = ["--database-url", standing.url];
  await runPrecast(["migrate", ...source], place.folder);
  if (standing.fresh) await fillLibrary(standing.url, size, say);
  else await settle(standing.url);
  return { size, url: standing.url, source };
}

async function isWhole(url: string): Promise<boolean> {
  return withClient(url, async (client) => {
    const found = await client.query("SELECT FROM hand.loaded WHERE content = $1", [CONTENT]).catch(() => null);
    return found?.rowCount === 1;
  });
}

async function fillLibrary(url: string, size: number, say: (text: string) => void): Promise<void> {
  const begun = performance.now();
  say(`live: making ${size.toLocaleString("en")} articles`);
  const types = await withClient(url, (client) => begin(client, size));
  // Triggers take most of the time: two connections use two processors.
  await Promise.all([0, 1].map((lane) => withClient(url, (client) => fillLane(client, types, size, lane))));
  say("live: making the indexes of the table by hand");
  await withClient(url, async (client) => {
    await client.query("SET maintenance_work_mem = '1GB'");
    await client.query(HAND_INDEXES);
  });
  await settle(url);
  await withClient(url, (client) => client.query(`CREATE TABLE hand.loaded AS SELECT '${CONTENT}' AS content`));
  say(`live: made in ${Math.round((performance.now() - begun) / 1_000)} s`);
}

async function settle(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("VACUUM ANALYZE");
    await client.query("CHECKPOINT");
  });
}

type Types = { readonly people: number; readonly articles: number };

async function begin(client: Client, size: number): Promise<Types> {
  await client.query("SET synchronous_commit = off");
  await client.query(HAND_TABLES);
  for (let number = 0; number < NEIGHBOURS.apps; number++) await fillNeighbour(client, number);
  const [people, articles] = (await defineApp(client, APP, [PEOPLE_TYPE, ARTICLES_TYPE])) as [number, number];
  for (let first = 0; first < peopleOf(size); first += BATCH) {
    const length = Math.min(BATCH, peopleOf(size) - first);
    const some = Array.from({ length }, (_, index) => personOf(first + index));
    await insertEntries(client, people, some.map(entryOfPerson));
    await insertPeople(client, some);
  }
  return { people, articles };
}

async function fillLane(client: Client, types: Types, size: number, lane: number): Promise<void> {
  await client.query("SET synchronous_commit = off");
  for (let first = lane * BATCH; first < size; first += 2 * BATCH) {
    const length = Math.min(BATCH, size - first);
    const some = Array.from({ length }, (_, index) => articleOf(first + index, peopleOf(size)));
    await insertEntries(client, types.articles, some.map(entryOfArticle));
    await insertArticles(client, some);
  }
}

/** Another app with three small types of the same fields. */
async function fillNeighbour(client: Client, number: number): Promise<void> {
  const types = ["notes", "pages", "events"].map((slug) => ({ ...ARTICLES_TYPE, slug, name: slug }));
  const ids = await defineApp(client, `neighbour-${number}`, types);
  for (const [place, id] of ids.entries())
    await insertEntries(client, id, smallEntries(number * 3 + place, NEIGHBOURS.entries));
}

/** Entries of a small type with the fields of articles. */
function smallEntries(type: number, count: number): Entry[] {
  const first = 2 ** 29 + type * 1_000;
  return Array.from({ length: count }, (_, index) => entryOfArticle(articleOf(first + index, 20, 30)));
}
