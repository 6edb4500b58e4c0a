/** Compares what clients received as counted with what the ledger says. */
import type { Client } from "pg";
import type { Reply } from "./readers.ts";

export type Counts = ReadonlyMap<string, number>;

/** Adds a reply to the counts, by shape and status, where its server says that it was counted. */
export function addReply(counts: Map<string, number>, shape: string, { status, headers }: Reply): void {
  if (headers["x-request-counted"] !== "true") return;
  const name = `${shape} ${status}`;
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

export async function readLedger(client: Client, appKey: string): Promise<Counts> {
  const { rows } = await client.query<{ name: string; count: string }>(
    "SELECT shape || ' ' || status AS name, sum(count)::text AS count FROM precast.usage WHERE app_key = $1 GROUP BY shape, status",
    [appKey],
  );
  return new Map(rows.map(({ name, count }) => [name, Number(count)]));
}

export function sumOf(counts: Counts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Received and not in the ledger, by shape and status. */
export function lost(received: Counts, ledger: Counts): string[] {
  return [...received]
    .filter(([name, count]) => (ledger.get(name) ?? 0) < count)
    .map(([name, count]) => `${name}: ${count} received, ${ledger.get(name) ?? 0} in the ledger`);
}
