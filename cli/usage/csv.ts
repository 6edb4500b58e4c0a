/** Writes CSV as RFC 4180 has it: each record ends in CR LF, and what could be misread is quoted. */

export function writeCsv(head: readonly string[], records: readonly (readonly (string | number)[])[]): string {
  return [head, ...records].map((record) => `${record.map(quote).join(",")}\r\n`).join("");
}

function quote(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
