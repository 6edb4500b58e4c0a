/** The server of a soak: `precast serve` with several workers, observed and killed from outside. */
import { until } from "../../support/until.ts";
import { childrenOf } from "../proc.ts";
import { type Served, startPrecast } from "../served.ts";

export type SoakServer = Served & {
  /** The processes that answer, the oldest first. */
  readonly workers: () => number[];
  /** Sends SIGKILL to one of them, and resolves when another has taken its place. */
  readonly killWorker: (pid: number) => Promise<void>;
};

export async function startServer(args: readonly string[], folder: string): Promise<SoakServer> {
  const served = await startPrecast("precast serve", args, folder);
  const workers = () => childrenOf(served.pid);
  const wanted = workers().length;
  return {
    ...served,
    workers,
    killWorker: async (victim) => {
      process.kill(victim, "SIGKILL");
      await until("another worker", () => !workers().includes(victim) && workers().length === wanted);
    },
  };
}
