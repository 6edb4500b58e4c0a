/** What `precast doctor` finds: what is wrong, what a change brings, and how it is made. */

export type Finding = {
  /** `information` asks for nothing: it tells the price of a choice. */
  readonly kind: "advice" | "information";
  readonly subject: string;
  readonly problem: string;
  readonly gain: string;
  readonly remedy: string;
  /** Statements that do it and block no writer, each in a transaction of its own. Null where a person has to do it. */
  readonly fix: readonly string[] | null;
};

export function isAdvice({ kind }: Finding): boolean {
  return kind === "advice";
}

export function canFix(finding: Finding): finding is Finding & { readonly fix: readonly string[] } {
  return isAdvice(finding) && finding.fix !== null;
}
