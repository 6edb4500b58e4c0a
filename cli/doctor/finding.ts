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
