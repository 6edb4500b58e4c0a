/** Signals when a client has gone away. Each connection has one signal, which is created on first use. */
import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import { ClientGone } from "../../shared/respond.ts";

const signals = new WeakMap<Socket, AbortSignal>();

export function goneSignalOf(socket: Socket): AbortSignal {
  const known = signals.get(socket);
  if (known !== undefined) return known;
  const controller = new AbortController();
  const gone = () => controller.abort(new ClientGone());
  if (socket.destroyed) gone();
  else socket.once("close", gone);
  // A client may have any number of requests in flight on one connection, and each adds a listener.
  setMaxListeners(0, controller.signal);
  signals.set(socket, controller.signal);
  return controller.signal;
}
