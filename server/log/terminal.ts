/** Opens the terminal for the log. One that is paused, or whose line is dead, takes no output for an unknown time. */
import { constants, openSync } from "node:fs";

const { O_WRONLY, O_NOCTTY, O_NONBLOCK } = constants;

/**
 * Opens the same terminal again in non-blocking mode, and returns the new file descriptor: Node.js makes writers to a
 * terminal wait, and a server must not. Returns `descriptor` when that cannot be opened, for example because it is
 * another user's.
 */
export function reopenNonBlocking(descriptor: number): number {
  try {
    return openSync(`/dev/fd/${descriptor}`, O_WRONLY | O_NOCTTY | O_NONBLOCK);
  } catch {
    return descriptor;
  }
}
