/** Builds after a small change: none at all, an edited entry, a published entry. */
import type { Case } from "../build-options.ts";
import { withClient } from "../client.ts";
import { type Entry, entryOf, isDraft, isMiddling, newSummary } from "../content.ts";
import { type Built, runBuild } from "../precast.ts";
import { against, buildResult, type Result } from "../result.ts";
import { spreadOf } from "../spread.ts";
import { compareLooks, type Look, lookAt, sizeOf, type Touched } from "../tree.ts";
import type { Work } from "../work.ts";
import type { Tree } from "./full.ts";

type Change = {
  readonly case: Case;
  readonly what: string;
  readonly aim: string;
  readonly edit: Edit | null;
};

/** One entry of the kind `of` gets new values, and in the same statement `columns` are set. */
type Edit = {
  readonly of: "middling" | "drafts";
  readonly values: (one: Numbered, run: number) => Partial<Entry["data"]>;
  readonly columns: string;
};

const newText: Edit["values"] = ({ number }, run) => ({ summary: newSummary(number, run) });
const newRating: Edit["values"] = ({ entry }) => ({ rating: Math.round(entry.data.rating * 100 + 1) / 100 });
const later = (name: string) => `, ${name} = (SELECT max(${name}) FROM precast.entries) + interval '1 hour'`;

const TEXT: Edit = { of: "middling", values: newText, columns: "" };
const RATING: Edit = { of: "middling", values: newRating, columns: "" };
const TEXT_AND_TIME: Edit = { of: "middling", values: newText, columns: later("updated_at") };
const PUBLICATION: Edit = {
  of: "drafts",
  values: newText,
  columns: `, status = 'published'${later("published_at")}${later("updated_at")}`,
};

const CHANGES: readonly Change[] = [
  { case: "nothing", what: "nothing changed", aim: "0 written, ≤ 0.05 × full", edit: null },
  { case: "edit", what: "a text edited", aim: "≤ 0.05 × full", edit: TEXT },
  { case: "edit", what: "a number edited", aim: "≤ 0.05 × full", edit: RATING },
  { case: "edit", what: "a text and updated_at", aim: "≤ 0.05 × full", edit: TEXT_AND_TIME },
  { case: "publish", what: "a draft published", aim: "≤ 0.15 × full", edit: PUBLICATION },
];

const ENTRY = "content_type_id = (SELECT id FROM precast.content_types) AND id = $1";

/** With more entries than this, the tree has too many files to hold the hashes of all in memory. */
const LOOKED_AT = 200_000;

export type Changed = {
  readonly results: readonly Result[];
  /** Files that were written without need, or changed without a new time. Null where none were checked. */
  readonly wrong: readonly string[] | null;
};

type Looker = () => Touched;
type Entries = Readonly<Record<Edit["of"], Iterator<Numbered, never>>>;

export async function changeCases(work: Work, tree: Tree): Promise<Changed> {
  const { options } = work;
  const look = options.check && options.entries <= LOOKED_AT ? openLooker(tree.out) : null;
  const entries: Entries = { middling: numbered(isMiddling), drafts: numbered((_, number) => isDraft(number)) };
  const results: Result[] = [];
  const wrong: string[] = [];
  for (const change of CHANGES) {
    if (!options.cases.includes(change.case)) continue;
    const { result, touched } = await changeCase(work, tree, change, entries, look);
    results.push(result);
    wrong.push(...touched.flatMap((one) => one.wrong));
  }
  return { results, wrong: look === null ? null : wrong };
}

async function changeCase(work: Work, tree: Tree, change: Change, entries: Entries, look: Looker | null) {
  const { options, place, say } = work;
  const { case: name, what, aim, edit } = change;
  const runs: Built[] = [];
  const touched: Touched[] = [];
  // A publication replaces every page, and a run soon after so many deletions is slower: hence fewer runs.
  for (let run = 1; run <= (name === "publish" ? options.runs.large : options.runs.small); run++) {
    say(`${name}: ${what}, run ${run}`);
    if (edit !== null) await apply(tree.url, edit, entries[edit.of].next().value, run);
    runs.push(await runBuild(tree.source, tree.out, place.folder));
    if (look !== null) touched.push(look());
  }
  const seconds = spreadOf(runs.map((run) => run.seconds));
  const changed = touched.length === 0 ? null : spreadOf(touched.map((one) => one.changed)).median;
  const named = { case: name, what, aim, changed, against: against("full", tree.seconds, seconds) };
  return { result: buildResult(runs, sizeOf(tree.out), named), touched };
}

async function apply(url: string, { values, columns }: Edit, one: Numbered, run: number): Promise<void> {
  const sql = `UPDATE precast.entries SET data = data || $2::jsonb${columns} WHERE ${ENTRY}`;
  const given = [one.entry.id, JSON.stringify(values(one, run))];
  const { rowCount } = await withClient(url, (client) => client.query(sql, given));
  if (rowCount !== 1) throw new Error(`No entry ${one.entry.id} to change.`);
}

type Numbered = { readonly number: number; readonly entry: Entry };

/** The entries that the function accepts, each once: neighbours by number are far apart in every list. */
function* numbered(accepts: (entry: Entry, number: number) => boolean): Generator<Numbered, never> {
  for (let number = 0; ; number++) {
    const entry = entryOf(number);
    if (accepts(entry, number)) yield { number, entry };
  }
}

/** Returns a function that says what happened to a tree since its last call. */
function openLooker(out: string): Looker {
  let last: Look = lookAt(out);
  return () => {
    const now = lookAt(out);
    const touched = compareLooks(last, now);
    last = now;
    return touched;
  };
}
