/** Puts configurations together. */

/** Lines as a comment of hosts where `#` begins one. */
export function comment(lines: readonly string[]): string {
  return lines.map((line) => `# ${line}`.trimEnd()).join("\n");
}

/** Parts with an empty line between them. */
export function sections(parts: readonly string[]): string {
  return `${parts.join("\n\n")}\n`;
}
