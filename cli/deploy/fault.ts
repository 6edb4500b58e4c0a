/** Lists the ways in which a store or a CDN can fail a deploy. The message says what failed and what to do. */

export type FaultKind =
  /** The bucket, folder, zone or service is not there. */
  | "missing"
  /** The credentials are wrong, expired or lack a permission. */
  | "denied"
  /** The bucket is in another region or at another address. */
  | "elsewhere"
  /** The local clock and that of the store differ too much. */
  | "clock"
  /** The connection cannot be made (name, address, certificate), or it breaks. */
  | "unreachable"
  /** There was no answer in time, or not the expected one. */
  | "silent"
  /** The service throttles requests or fails, and retries do not help. */
  | "busy"
  /** The response does not follow the protocol: perhaps a proxy or another server sent it. */
  | "garbled"
  /** The service refused the request for any other reason. */
  | "refused";

export class RemoteFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string) {
    super(message);
    this.name = "RemoteFault";
    this.kind = kind;
  }
}
