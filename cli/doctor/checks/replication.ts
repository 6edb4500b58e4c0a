/** Finds replication slots without a reader, which fill the disk, and replicas that keep VACUUM from removing dead rows. */
import { sql } from "../../../shared/query.ts";
import { formatBytes, formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

type ReplicationSlot = {
  readonly name: string;
  /** The statement that drops it. */
  readonly dropStatement: string;
  readonly isRead: boolean;
  /** Bytes of WAL that the server must keep for its reader. */
  readonly walBytes: number;
  /** Number of transactions since the oldest one whose dead rows it keeps; 0 when it keeps none. */
  readonly transactions: number;
};

/** A replica without a slot that reports what its queries read (`hot_standby_feedback`). */
type Standby = Pick<ReplicationSlot, "name" | "transactions">;

type Facts = { readonly slots: readonly ReplicationSlot[]; readonly standbys: readonly Standby[] };

export const replicationCheck = defineCheck<Facts>({
  name: "replication",
  gather: readReplication,
  judge: ({ slots, standbys }) => [
    ...slots.filter((slot) => !slot.isRead).flatMap(unreadFindings),
    ...slots.filter(({ isRead }) => isRead).flatMap(heldFindings),
    ...standbys.flatMap(heldFindings),
  ],
});

/** A replica that is started again reads less than this before it has caught up. */
const MUCH_WAL = 1_000_000_000;
/** A query that keeps the dead rows of so many transactions is no live query, which has seconds. */
const MANY_TRANSACTIONS = 100_000;

async function readReplication({ database }: CheckContext): Promise<Facts> {
  const slots = await database.query(
    sql(`SELECT slot_name, format('SELECT pg_drop_replication_slot(%L)', slot_name), active::text,
  coalesce(pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint::text,
  coalesce(age(xmin), 0)::text
FROM pg_replication_slots ORDER BY slot_name`),
  );
  const standbys = await database.query(
    sql(`SELECT coalesce(nullif(application_name, ''), host(client_addr), pid::text), age(backend_xmin)::text
FROM pg_stat_replication WHERE backend_xmin IS NOT NULL ORDER BY pid`),
  );
  return {
    slots: slots.map(([name, dropStatement, active, walBytes, transactions]) => ({
      name: name as string,
      dropStatement: dropStatement as string,
      isRead: active === "true",
      walBytes: Number(walBytes),
      transactions: Number(transactions),
    })),
    standbys: standbys.map(([name, transactions]) => ({ name: name as string, transactions: Number(transactions) })),
  };
}

function unreadFindings({ name, dropStatement, walBytes, transactions }: ReplicationSlot): Finding[] {
  const kept = [
    ...(walBytes < MUCH_WAL ? [] : [`${formatBytes(walBytes)} of WAL`]),
    ...(transactions < MANY_TRANSACTIONS ? [] : [deadRows(transactions)]),
  ];
  if (kept.length === 0) return [];
  return [
    {
      kind: "advice",
      subject: `Replication slot ${name}`,
      problem: `Nobody reads it, and PostgreSQL keeps ${kept.join(" and ")} for its reader, more with every write.`,
      gain: "The disk does not fill up, and VACUUM can remove dead rows.",
      remedy: `Start its reader again, or drop it if there is none any more: ${dropStatement}.`,
      fix: null,
    },
  ];
}

function heldFindings({ name, transactions }: Standby): Finding[] {
  if (transactions < MANY_TRANSACTIONS) return [];
  return [
    {
      kind: "advice",
      subject: `Replica ${name}`,
      problem: `A query on it keeps ${deadRows(transactions)} here, because the replica has hot_standby_feedback on.`,
      gain: "VACUUM can remove dead rows, and counts stay fast.",
      remedy:
        "Find the query in pg_stat_activity of the replica, and end it, or switch hot_standby_feedback off there.",
      fix: null,
    },
  ];
}

function deadRows(transactions: number): string {
  return `the rows that died in the last ${formatCount(transactions)} transactions`;
}
