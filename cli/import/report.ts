/** Counts the rows that an import changes, or would change in a dry run. */
import type { MissingTarget } from "./missing-target.ts";

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
