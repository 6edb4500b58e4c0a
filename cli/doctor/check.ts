/** Defines a check of `precast doctor`: one function gathers facts, another derives findings from these facts alone. */
import type { App, ContentType } from "../../shared/api/catalog.ts";
import type { Database } from "../../shared/database/database.ts";

/** What every check may read. */
export type CheckContext = {
  readonly database: Database;
  readonly types: readonly TypeSize[];
  readonly dataDir: string;
  /** Null when none is set. */
  readonly mediaBaseUrl: string | null;
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

export type Finding = {
  /** `information` recommends no change: it states what a choice costs. */
  readonly kind: "advice" | "information";
  readonly subject: string;
  readonly problem: string;
  readonly gain: string;
  readonly remedy: string;
  /** Statements that make the change and block no writer, each in its own transaction. Null when a person must act. */
  readonly fix: readonly string[] | null;
};

/** A finding as a check says it: advice for a person, unless it says otherwise. */
export type Found = Omit<Finding, "kind" | "fix"> & Partial<Pick<Finding, "kind" | "fix">>;

export type Check = {
  readonly name: string;
  readonly findings: (context: CheckContext) => Promise<readonly Finding[]>;
};

type CheckParts<F> = {
  readonly name: string;
  readonly gather: (context: CheckContext) => Promise<F>;
  /** Null stands for no finding. */
  readonly judge: (facts: F) => readonly (Found | null)[];
};

export function defineCheck<F>({ name, gather, judge }: CheckParts<F>) {
  const findings = (facts: F) => judge(facts).flatMap((found) => (found === null ? [] : complete(found)));
  return { name, gather, judge: findings, findings: async (context: CheckContext) => findings(await gather(context)) };
}

function complete({ kind = "advice", subject, problem, gain, remedy, fix = null }: Found): Finding {
  return { kind, subject, problem, gain, remedy, fix };
}

export function isAdvice({ kind }: Finding): boolean {
  return kind === "advice";
}

export function canFix(finding: Finding): finding is Finding & { readonly fix: readonly string[] } {
  return isAdvice(finding) && finding.fix !== null;
}

/** The remedy that runs statements, and the fix, which is left to `who` unless this role may run them. */
export function statementRemedy(
  mayRun: boolean,
  who: string,
  statements: readonly string[],
  note: string,
): Pick<Finding, "remedy" | "fix"> {
  const run = mayRun ? "Run" : `Have ${who} run`;
  return { remedy: `${run} ${statements.join("; ")}. ${note}`, fix: mayRun ? statements : null };
}
