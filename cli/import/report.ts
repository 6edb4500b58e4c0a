/** What an import reports: the problems of a bundle that it refuses, or the rows that it has changed. */
import { formatCount, printableLine } from "../../shared/text.ts";

/**
 * `file` is relative to the bundle. `line` counts from 1, and is null for a problem of the whole file. `places` are the
 * lines, or for problems of whole files the files, that have problems of the same kind: the first ones, and how many.
 */
type Problem = {
  readonly file: string;
  readonly line: number | null;
  readonly message: string;
  readonly places: (string | number)[];
  count: number;
};

/**
 * The first kinds of problems, and the number of problems of other kinds: a bundle may have one on each of a million
 * lines.
 */
export type Problems = { readonly listed: Map<string, Problem>; others: number };

const MAX_LISTED = 100;
const MAX_PLACES = 5;

export function noProblems(): Problems {
  return { listed: new Map(), others: 0 };
}

/** Problems of one `kind`, in one file or each of a whole file, are listed once. */
export function addProblem(
  problems: Problems,
  file: string,
  line: number | null,
  message: string,
  kind = message.replace(FOUND, ""),
): void {
  const key = JSON.stringify([line === null ? null : file, kind]);
  const place = line ?? printableLine(file);
  const same = problems.listed.get(key);
  if (same !== undefined) addPlace(same, place);
  else if (problems.listed.size === MAX_LISTED) problems.others++;
  else {
    const shown = { file: printableLine(file), message: printableLine(message) };
    problems.listed.set(key, { ...shown, line, places: [place], count: 1 });
  }
}

/** What a message says of the value that was found: the rest is the same for others of its kind. */
const FOUND = /, not .*|, but element .*|(?<=is not valid JSON|"id" must be unique): .*/s;

function addPlace(problem: Problem, place: string | number): void {
  if (problem.places.at(-1) === place) return;
  problem.count++;
  if (problem.places.length < MAX_PLACES) problem.places.push(place);
}

/** `entries/posts.ndjson:12: field "post_date" must be a date such as 2026-01-20, not "2026-02-30" (on 2 lines: 12, 40)` */
export function describeProblem({ file, line, message, places, count }: Problem): string {
  const text = `${file}${line === null ? "" : `:${line}`}: ${message}`;
  if (count === 1) return text;
  const where = line === null ? `in ${formatCount(count)} files` : `on ${formatCount(count)} lines`;
  return `${text} (${where}: ${places.join(", ")}${count > places.length ? ", …" : ""})`;
}

export function describeProblems({ listed, others }: Problems): string[] {
  return [...listed.values()].map(describeProblem).concat(others > 0 ? `and ${others} more` : []);
}

/** Thrown for an invalid bundle. Nothing of the bundle is imported. */
export class ImportProblems extends Error {
  readonly problems: readonly Problem[];
  /** Number of problems of kinds that `problems` does not list. */
  readonly more: number;

  constructor({ listed, others }: Problems) {
    super(describeProblems({ listed, others }).join("\n"));
    this.name = "ImportProblems";
    this.problems = [...listed.values()];
    this.more = others;
  }
}

const MAX_QUOTED_LENGTH = 60;

/** Formats a value of the bundle for a message: on one line, and shortened when it is long. */
export function quote(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "number") return String(value);
  const text = JSON.stringify(value);
  return text.length <= MAX_QUOTED_LENGTH ? text : `${shorten(text)}"`;
}

export function shorten(text: string): string {
  return text.length <= MAX_QUOTED_LENGTH ? text : `${text.slice(0, MAX_QUOTED_LENGTH)}…`;
}

// Counts the rows that an import changes, or would change in a dry run.

export type Changes = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly deleted: number;
};

/** Files in the data directory. */
export type MediaChanges = { readonly copied: number; readonly unchanged: number; readonly deleted: number };

/**
 * A relation whose target is no content type of its app: `populate` shows nothing of it. It is allowed, because a CMS may
 * add the target later, but most are misspelt. Slugs of the type and of its target, and the name of the relation.
 */
export type MissingTarget = { readonly type: string; readonly field: string; readonly target: string };

/** No number includes the rows that the bundle lacks and the database keeps. */
export type ImportReport = {
  readonly app: string;
  readonly types: Changes;
  readonly fields: Changes;
  readonly entries: Changes;
  /** Of all types of the app after the import. */
  readonly missingTargets: readonly MissingTarget[];
  /** What is allowed, but has effects that few expect. */
  readonly warnings: readonly string[];
  /** Only of a bundle with a folder of media. */
  readonly media?: MediaChanges;
};

export const NO_CHANGES: Changes = { created: 0, updated: 0, unchanged: 0, deleted: 0 };

export function addChanges(a: Changes, b: Changes): Changes {
  return {
    created: a.created + b.created,
    updated: a.updated + b.updated,
    unchanged: a.unchanged + b.unchanged,
    deleted: a.deleted + b.deleted,
  };
}

export function deletions(deleted: number): Changes {
  return { ...NO_CHANGES, deleted };
}
