/** When counts are sent to the database: soon after they were counted, and again and again while it is away. One sending at a time. */
import type { Outbox } from "./outbox.ts";
import type { Pages } from "./page.ts";

export type Sender = {
  /** What is counted now is sent in a second. */
  readonly later: () => void;
  readonly now: () => void;
  /** Ends the page and sends what it can, for the last time. */
  readonly close: () => Promise<void>;
};

const SEND_AFTER = 1_000;
const RETRY_AFTER = 1_000;

export function openSender(outbox: Outbox, pages: Pages): Sender {
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

  /** While the database is away one journal is written on, instead of a new one each time. */
  async function sendAll(): Promise<void> {
    let sent = await outbox.send();
    if (sent && pages.current() !== null) {
      await pages.end();
      sent = await outbox.send();
    }
    if (!sent) sendIn(RETRY_AFTER);
    // What was counted meanwhile may have come to its time, and found that something was being sent.
    else if (pages.current() !== null) sendIn(SEND_AFTER);
  }

  return {
    later: () => sendIn(SEND_AFTER),
    now: () => sendIn(0),
    close: async () => {
      await sending;
      await pages.end();
      await send();
      if (timer !== null) clearTimeout(timer);
    },
  };
}
