/** Explains why the embedded database cannot be opened and what to do, so that nobody removes one that is intact. */
import { accessSync, constants } from "node:fs";
import { isDiskFull } from "./disk-space.ts";

/** Returns one or two sentences for users. `message` is the message of PGlite, which is the same for several causes. */
export function explainOpenFailure(folder: string, message: string): string {
  const subject = `The embedded database in ${folder}`;
  if (isForbidden(folder)) {
    return `${subject} cannot be used by this user. Give the folder to this user, or name another (--data-dir).`;
  }
  if (isDiskFull(folder)) {
    return `${subject} cannot be opened, for its disk is full. What was there before is intact; make room and run the command again.`;
  }
  if (/WebAssembly|out of memory|allocation failed/i.test(message)) {
    return `${subject} needs more memory than this process may have (${message}). Raise the limit (ulimit -v), or use PostgreSQL (--database-url).`;
  }
  return `${subject} cannot be opened (${message}). Put a copy of that folder in its place, or remove it and import again.`;
}

function isForbidden(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return false;
  } catch (error) {
    return ["EACCES", "EPERM", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}
