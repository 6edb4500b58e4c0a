/** A terminal that shows the log. One that is paused, or whose line has fallen silent, takes nothing and does not say when. */
import { constants, openSync } from "node:fs";

const { O_WRONLY, O_NOCTTY, O_NONBLOCK } = constants;

/**
 * The same terminal, opened for the log alone so that it refuses what it does not take: Node.js has whoever writes to one wait,
 * and a server must not. Where it cannot be opened again, as that of another user, it is written to as it is.
 */
export function openAnew(descriptor: number): number {
  try {
    return openSync(`/dev/fd/${descriptor}`, O_WRONLY | O_NOCTTY | O_NONBLOCK);
  } catch {
    return descriptor;
  }
}
