/** Writes CSV as defined in RFC 4180: each record ends with CR LF, and values with special characters are quoted. */

export function writeCsv(head: readonly string[], records: readonly (readonly (string | number)[])[]): string {
  return [head, ...records].map((record) => `${record.map(quote).join(",")}\r\n`).join("");
}

function quote(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
