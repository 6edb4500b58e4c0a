/**
 * Schedules sending counts to the database: soon after they were counted, and repeatedly while it is unavailable. Only
 * one sending runs at a time.
 */

import type { JournalWriter } from "./journal-writer.ts";
import type { Outbox } from "./outbox.ts";

export type Sender = {
  /** Schedules a sending in a second. */
  readonly later: () => void;
  readonly now: () => void;
  /** Ends the current journal and tries for the last time to send everything. */
  readonly close: () => Promise<void>;
};

const SEND_AFTER = 1_000;
const RETRY_AFTER = 1_000;

export function openSender(outbox: Outbox, writer: JournalWriter): Sender {
  let sending: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  function sendIn(milliseconds: number): void {
    timer ??= setTimeout(() => {
      timer = null;
      void send();
    }, milliseconds);
  }

  function send(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = null;
    });
    return sending;
  }

  /**
   * Ends the current journal only after the outbox was sent: while the database is unavailable, one journal grows
   * instead of a new one being opened for every attempt.
   */
  async function sendAll(): Promise<void> {
    let sent = await outbox.send();
    if (sent && writer.current() !== null) {
      await writer.end();
      sent = await outbox.send();
    }
    if (!sent) sendIn(RETRY_AFTER);
    // The timer for counts made during this sending may have fired already, and then did nothing.
    else if (writer.current() !== null) sendIn(SEND_AFTER);
  }

  return {
    later: () => sendIn(SEND_AFTER),
    now: () => sendIn(0),
    close: async () => {
      await sending;
      await writer.end();
      await send();
      if (timer !== null) clearTimeout(timer);
    },
  };
}
