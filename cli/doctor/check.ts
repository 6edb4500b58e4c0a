/** What a check of `precast doctor` is: it gathers facts, and judges them without looking at anything else. */
import type { App, ContentType } from "../../shared/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import type { Finding } from "./finding.ts";

/** What all checks may look at. */
export type Patient = {
  readonly database: Database;
  readonly types: readonly TypeSize[];
  readonly dataDir: string;
  /** Live queries at once that the servers are to have. */
  readonly connections: number;
  readonly now: Date;
};

/** A published content type, and how many entries it shows. */
export type TypeSize = { readonly app: App; readonly type: ContentType; readonly entries: number };

/** A type with fewer entries is read from end to end in a few milliseconds. */
export const LARGE = 10_000;

export type Check = { readonly name: string; readonly findings: (patient: Patient) => Promise<readonly Finding[]> };

export type CheckParts<F> = {
  readonly name: string;
  readonly gather: (patient: Patient) => Promise<F>;
  readonly judge: (facts: F) => readonly Finding[];
};

export function defineCheck<F>(parts: CheckParts<F>): Check & CheckParts<F> {
  return { ...parts, findings: async (patient) => parts.judge(await parts.gather(patient)) };
}
