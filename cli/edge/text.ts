/** Assembles the text of configurations. */

/** The lines as a comment, for hosts where `#` begins one. */
export function comment(lines: readonly string[]): string {
  return lines.map((line) => `# ${line}`.trimEnd()).join("\n");
}

/** The parts, with an empty line between them. */
export function sections(parts: readonly string[]): string {
  return `${parts.join("\n\n")}\n`;
}
