/** The same articles and people as a bundle folder, for `precast import`. */
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { articleOf, peopleOf, personOf } from "./article.ts";
import { APP, ARTICLES_TYPE, PEOPLE_TYPE } from "./definition.ts";
import { type Entry, entryOfArticle, entryOfPerson } from "./entries.ts";

const BATCH = 1_000;

/** Returns the number of entries in the bundle. */
export function writeBundle(folder: string, articles: number): number {
  for (const part of ["content_types", "entries"]) mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(join(folder, "app.json"), JSON.stringify({ key: APP, name: APP }));
  for (const type of [PEOPLE_TYPE, ARTICLES_TYPE])
    writeFileSync(join(folder, "content_types", `${type.slug}.json`), JSON.stringify(type));
  const people = peopleOf(articles);
  writeEntries(folder, PEOPLE_TYPE.slug, people, (number) => entryOfPerson(personOf(number)));
  writeEntries(folder, ARTICLES_TYPE.slug, articles, (number) => entryOfArticle(articleOf(number, people)));
  return people + articles;
}

function writeEntries(folder: string, slug: string, count: number, make: (number: number) => Entry): void {
  const file = join(folder, "entries", `${slug}.ndjson`);
  for (let first = 0; first < count; first += BATCH) {
    const length = Math.min(BATCH, count - first);
    appendFileSync(file, Array.from({ length }, (_, index) => lineOf(make(first + index))).join(""));
  }
}

function lineOf({ data, rich, ...rest }: Entry): string {
  return `${JSON.stringify({ ...rest, status: "published", data: { ...data, ...rich } })}\n`;
}
