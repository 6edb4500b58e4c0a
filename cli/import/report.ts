/** What an import reports: the problems of a bundle that it refuses, or the rows that it has changed. */

/** `file` is relative to the bundle. `line` counts from 1, and is null for a problem of the whole file. */
type Problem = { readonly file: string; readonly line: number | null; readonly message: string };

/** Lists the first problems and counts all: a bundle may have a problem on each of a million lines. */
export type Problems = { readonly listed: Problem[]; count: number };

const MAX_LISTED = 100;
export function noProblems(): Problems {
  return { listed: [], count: 0 };
}

export function addProblem(problems: Problems, file: string, line: number | null, message: string): void {
  problems.count++;
  if (problems.listed.length < MAX_LISTED) problems.listed.push({ file, line, message });
}

/** `entries/posts.ndjson:12: field "post_date" must be a date such as 2026-01-20, not "2026-02-30"` */
export function describeProblem({ file, line, message }: Problem): string {
  return `${file}${line === null ? "" : `:${line}`}: ${message}`;
}

/** Thrown for an invalid bundle. Nothing of the bundle is imported. */
export class ImportProblems extends Error {
  readonly problems: readonly Problem[];
  /** Number of problems that `problems` does not list. */
  readonly more: number;

  constructor({ listed, count }: Problems) {
    const more = count - listed.length;
    super([...listed.map(describeProblem), ...(more > 0 ? [`and ${more} more`] : [])].join("\n"));
    this.name = "ImportProblems";
    this.problems = listed;
    this.more = more;
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
  return text.length <= MAX_QUOTED_LENGTH ? text : `${text.slice(0, MAX_QUOTED_LENGTH)}…"`;
}

// Counts the rows that an import changes, or would change in a dry run.

export type Changes = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly deleted: number;
};

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
