/** The error of a store or a CDN that fails a deploy. The message says what failed and what to do. */

export class RemoteFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = "RemoteFault";
  }
}
