/** Chooses the id of a request: the one that the client sent, or a new UUID. It is in the answer and in the log. */
import { randomUUID } from "node:crypto";
import { containsKey } from "../log/redaction.ts";

/** Only characters that have no special meaning in a header, a log line or a terminal. */
const ACCEPTED = /^[A-Za-z0-9._~:/+=@-]{1,128}$/;

/** An id that contains the app key is replaced by a new one, because ids are logged unredacted. */
export function requestIdOf(given: string | undefined, appKey: string | undefined): string {
  if (given === undefined || !ACCEPTED.test(given)) return randomUUID();
  return appKey !== undefined && containsKey(given, appKey) ? randomUUID() : given;
}
