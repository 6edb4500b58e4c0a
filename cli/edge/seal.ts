/** Seals files that people may change, so that a file that nobody has changed can be told from one that somebody has. */
import { hash } from "node:crypto";
import type { EdgeFile } from "./edge.ts";

/** Adds a last line with a digest of the text. JSON has no comments, so such a file stays without one. */
export function sealed(file: EdgeFile): EdgeFile {
  return file.isEdited && !file.name.endsWith(".json") ? { ...file, text: file.text + sealOf(file.text) } : file;
}

/** Whether a sealed text is still what was generated. False for one without a seal. */
export function isUnchanged(text: string): boolean {
  const end = text.lastIndexOf(START);
  return end >= 0 && text.slice(end) === sealOf(text.slice(0, end));
}

const START = "# `precast edge --write` replaces this file unless it was changed: ";

function sealOf(text: string): string {
  return `${START}${hash("sha256", text).slice(0, 16)}\n`;
}
