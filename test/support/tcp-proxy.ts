/** A TCP proxy to the database that can silence or reset its connections. Later connections work. */
import { connect, createServer, type Socket } from "node:net";

export type TcpProxy = {
  readonly url: string;
  /** Existing connections stay open, but carry nothing more. */
  readonly cut: () => void;
  /** Resets the existing connections. */
  readonly reset: () => void;
  readonly close: () => Promise<void>;
};

/** Connects the client's socket (`near`) and the server's (`far`). */
export type Join = (near: Socket, far: Socket) => void;

export const forward: Join = (near, far) => near.pipe(far).pipe(near);

export async function openTcpProxy(target: string, join = forward): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    pairs.add([near, far]);
    join(near, far);
    for (const socket of [near, far]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(target);
  const address = server.address();
  url.port = String(typeof address === "object" ? address?.port : "");
  return {
    url: url.href,
    cut: () => {
      for (const [near, far] of pairs) {
        near.unpipe();
        far.unpipe();
      }
    },
    reset: () => {
      for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const pair of pairs) for (const socket of pair) socket.destroy();
      }),
  };
}
