/** The id of a request: the one that it came with, or a new one. It is in the answer and in the log. */
import { randomUUID } from "node:crypto";
import { holdsKey } from "../log/redaction.ts";

/** Nothing that a header, a line of a log or a terminal could read as more than a word. */
const ACCEPTED = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;

/** An id that holds the app key is not taken over: ids are logged in clear. */
export function requestIdOf(given: string | undefined, appKey: string | undefined): string {
  if (given === undefined || !ACCEPTED.test(given)) return randomUUID();
  return appKey !== undefined && holdsKey(given, appKey) ? randomUUID() : given;
}
