/** The clients of a soak: each sends a request, has its answer checked, and repeats that until the soak ends. */
import { Agent, request } from "node:http";
import { randomFrom } from "../random.ts";

export type Reply = {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
};

/** Without an agent, the request has a connection of its own. Resolves with null when the connection breaks. */
export function askOnce(agent: Agent | undefined, url: string, target: string, appKey: string): Promise<Reply | null> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const failed = () => resolve(null);
    const outgoing = request(
      { agent: agent ?? false, hostname, port, path: target, headers: { "X-App-Key": appKey } },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", failed);
        incoming.on("aborted", failed);
        incoming.on("end", () =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks) }),
        );
      },
    );
    outgoing.on("error", failed);
    outgoing.end();
  });
}

export type Readers = {
  /** Answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Requests whose connection broke before the answer was whole. */
  readonly broken: () => number;
  /** Milliseconds of each answer. */
  readonly durations: readonly number[];
  /** Resolves when the last answer has arrived. */
  readonly stop: () => Promise<void>;
};

export type ReaderOptions = {
  readonly url: string;
  readonly appKey: string;
  readonly targets: readonly string[];
  readonly clients: number;
  readonly seed: number;
  readonly onReply: (target: string, reply: Reply) => void;
};

export function startReaders({ url, appKey, targets, clients, seed, onReply }: ReaderOptions): Readers {
  const statuses = new Map<number, number>();
  const durations: number[] = [];
  let broken = 0;
  let isOn = true;

  async function read(client: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const random = randomFrom(seed + client);
    while (isOn) {
      const target = random.pick(targets);
      const begun = performance.now();
      const reply = await askOnce(agent, url, target, appKey);
      if (reply === null) {
        broken += 1;
        continue;
      }
      durations.push(performance.now() - begun);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      onReply(target, reply);
    }
    agent.destroy();
  }

  const all = Promise.all(Array.from({ length: clients }, (_, client) => read(client)));
  const stop = async () => {
    isOn = false;
    await all;
  };
  return { statuses, broken: () => broken, durations, stop };
}
