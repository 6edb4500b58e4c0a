/** Every way in which a store or a CDN fails a deploy. The message says what it is and what to do. */

export type FaultKind =
  /** The bucket, folder, zone or service is not there. */
  | "missing"
  /** The credentials are wrong, or may not do this. */
  | "denied"
  /** The bucket is in another region or at another address. */
  | "elsewhere"
  /** Its clock and ours tell different times. */
  | "clock"
  /** Nobody takes the connection, or it breaks. */
  | "unreachable"
  /** No answer in time. */
  | "silent"
  /** It asks for fewer requests, or fails, and does not recover. */
  | "busy"
  /** What answers does not speak the protocol. */
  | "garbled"
  /** Everything else that it says no to. */
  | "refused";

export class RemoteFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string) {
    super(message);
    this.name = "RemoteFault";
    this.kind = kind;
  }
}
