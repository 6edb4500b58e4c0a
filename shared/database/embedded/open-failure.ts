/** Explains why the embedded database cannot be opened and what to do, so that nobody removes one that is intact. */
import { accessSync, constants, statSync } from "node:fs";
import { describeFullDisk, isDiskFull } from "./disk-space.ts";

/** Returns one or two sentences for users. `message` is the message of PGlite, which is the same for several causes. */
export function explainOpenFailure(folder: string, message: string): string {
  const subject = `The embedded database in ${folder}`;
  if (isFile(folder))
    return `${subject} cannot be opened: that is a file, not a folder. Remove it, or choose another folder (--data-dir).`;
  if (isForbidden(folder)) {
    return `${subject} cannot be used by this user. Give this user access to the folder, or choose another folder (--data-dir).`;
  }
  if (isDiskFull(folder)) return describeFullDisk(folder, "opened");
  if (isMemoryFailure(message)) {
    return `${subject} needs more memory than this process may use (${message}). Raise the limit (ulimit -v), or use PostgreSQL (--database-url).`;
  }
  return `${subject} cannot be opened (${message}). Replace the folder with a backup of it, or remove it and import again.`;
}

/** PGlite's message for too little memory depends on the version of V8. */
export function isMemoryFailure(message: string): boolean {
  return /WebAssembly|out of memory|allocation failed/i.test(message);
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isForbidden(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return false;
  } catch (error) {
    return ["EACCES", "EPERM", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}
