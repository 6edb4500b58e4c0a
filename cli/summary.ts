/** Appends what a command did to a file as a table in Markdown, such as the summary of a step in GitHub Actions. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { escapeMarkdown } from "../shared/text.ts";

export type Summary = {
  readonly title: string;
  /** Whether it only says what would be done. */
  readonly dryRun: boolean;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
};
type Column = { readonly name: string; readonly align: "left" | "right" };

/** Opens the file at once, so that one that cannot be written is known before anything is done. Null writes nothing. */
export function openSummary(file: string | null): (summary: Summary) => void {
  if (file === null) return () => {};
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, "");
  return (summary) => appendFileSync(file, writeSummary(summary));
}

/** Begins with an empty line: what is in the file may end with a paragraph, which would go on. */
function writeSummary({ title, dryRun, columns, rows }: Summary): string {
  const names = columns.map(({ name }) => name);
  const sides = columns.map(({ align }) => (align === "left" ? "---" : "---:"));
  const table = [names, sides, ...rows.map((row) => row.map(escapeMarkdown))];
  const lines = table.map((cells) => `| ${cells.join(" | ")} |\n`);
  return `\n### ${escapeMarkdown(title)}${dryRun ? " (dry run)" : ""}\n\n${lines.join("")}`;
}

/** The columns of a table whose first one has names and whose others have numbers, but for one that says why. */
export function nameColumns(...names: readonly string[]): readonly Column[] {
  return names.map((name, index) => ({ name, align: index === 0 || name === "Why" ? "left" : "right" }));
}
