/**
 * The orders that the thread of an embedded database carries out, and their replies. Both go over a channel that keeps
 * their order: the port of the thread, or the socket of a process that uses the database through another one.
 */
import type { Query, Row } from "../../sql/query.ts";
import type { Access, Session } from "../database.ts";
import { DatabaseFault, EmbeddedFault, type FaultReason } from "../errors.ts";

export type Order =
  | { readonly query: Query }
  | { readonly script: string }
  | { readonly begin: Access }
  | { readonly commit: true }
  | { readonly rollback: true }
  | { readonly listen: true }
  | { readonly close: true };

export type Reply = { readonly rows: readonly Row[] } | { readonly error: PackedError };
/** Reports a change of content to one that listens; not a reply to an order. */
export type ChangeReport = { readonly heard: true };

/** Only that of a DatabaseFault has a reason. */
export type PackedError = {
  readonly message: string;
  readonly code: string;
  readonly reason?: FaultReason;
  readonly isEmbedded?: boolean;
};

export function packError(error: unknown): PackedError {
  const { message, code } = error as { message?: unknown; code?: unknown };
  const packed = { message: String(message ?? JSON.stringify(error)), code: String(code ?? "") };
  if (!(error instanceof DatabaseFault)) return packed;
  return { ...packed, reason: error.reason, isEmbedded: error instanceof EmbeddedFault };
}

function unpackError({ message, code, reason, isEmbedded }: PackedError): Error {
  if (isEmbedded) return new EmbeddedFault(message);
  return reason === undefined ? Object.assign(new Error(message), { code }) : new DatabaseFault(reason, message);
}

/** Those who wait for the replies of a channel. */
export function openReplies() {
  const waiting: { readonly resolve: (rows: Row[]) => void; readonly reject: (error: Error) => void }[] = [];
  let ended: DatabaseFault | null = null;
  return {
    /** The first reply that nobody waits for yet; rejects once the channel has ended. */
    next: () =>
      new Promise<Row[]>((resolve, reject) => {
        if (ended === null) waiting.push({ resolve, reject });
        else reject(ended);
      }),
    settle: (reply: Reply) => {
      const first = waiting.shift();
      if ("rows" in reply) first?.resolve(reply.rows as Row[]);
      else first?.reject(unpackError(reply.error));
    },
    end: (fault: DatabaseFault) => {
      ended ??= fault;
      for (const { reject } of waiting.splice(0)) reject(fault);
    },
    hasEnded: () => ended !== null,
  };
}

/** Runs a transaction by orders; rolls back when `work` or the commit throws. */
export async function runTransaction<T>(
  run: (order: Order) => Promise<Row[]>,
  access: Access,
  work: (session: Session) => Promise<T>,
  rollBack: () => unknown,
): Promise<T> {
  await run({ begin: access });
  try {
    const result = await work({
      query: (query) => run({ query }),
      execute: async (script) => void (await run({ script })),
    });
    await run({ commit: true });
    return result;
  } catch (error) {
    await rollBack();
    throw error;
  }
}
