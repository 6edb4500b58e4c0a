/** Defines a check of `precast doctor`: one function gathers facts, another derives findings from these facts alone. */
import type { App, ContentType } from "../../shared/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import type { Finding } from "./finding.ts";

/** What every check may read. */
export type CheckContext = {
  readonly database: Database;
  readonly types: readonly TypeSize[];
  readonly dataDir: string;
  /** Number of concurrent live queries that a server may run (`--connections`). */
  readonly connections: number;
  /** Number of processes of a server (`--workers`). */
  readonly workers: number;
  readonly now: Date;
};

/** A published content type, with the number of its published entries. */
export type TypeSize = { readonly app: App; readonly type: ContentType; readonly entries: number };

/** Entries. The database reads a smaller type from end to end in a few milliseconds. */
export const LARGE_TYPE = 10_000;

export type Check = {
  readonly name: string;
  readonly findings: (context: CheckContext) => Promise<readonly Finding[]>;
};

export type CheckParts<F> = {
  readonly name: string;
  readonly gather: (context: CheckContext) => Promise<F>;
  readonly judge: (facts: F) => readonly Finding[];
};

export function defineCheck<F>(parts: CheckParts<F>): Check & CheckParts<F> {
  return { ...parts, findings: async (context) => parts.judge(await parts.gather(context)) };
}
