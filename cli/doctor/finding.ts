/** Defines a finding of `precast doctor`: the problem, what a change would gain, and how to make the change. */

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

export function isAdvice({ kind }: Finding): boolean {
  return kind === "advice";
}

export function canFix(finding: Finding): finding is Finding & { readonly fix: readonly string[] } {
  return isAdvice(finding) && finding.fix !== null;
}

/** What a remedy that changes the slots of a type says of its price (schema/0004_slots.sql). */
export const CHANGE_WRITES =
  "A change of these lists may write all entries of the type in one transaction, about 0.2 ms each, and writers of the type wait meanwhile.";

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
