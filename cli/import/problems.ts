/** Defines the problems of a bundle that an import collects, and the error that reports them. */
import type { MissingTarget } from "./rules.ts";

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

// Counts the rows that an import changes, or would change in a dry run.

export type Changes = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly deleted: number;
};

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
