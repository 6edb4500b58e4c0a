/**
 * Keeps what the last builds of each app wrote, and why, for people: the studio and the report show it. It is never
 * deployed, and nothing depends on it.
 */
import { join } from "node:path";
import * as z from "zod";
import { readText, writeAtomic } from "../../shared/files.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import { STATE_FOLDER } from "../../shared/tree.ts";
import type { AppReport } from "./report.ts";

const HISTORY = `${STATE_FOLDER}/history.json`;
/** Builds that are kept of an app, and of all apps together. */
const MOST_OF_APP = 20;
const MOST = 1_000;

const historySchema = once(() =>
  z.array(
    z.object({
      built_at: z.string(),
      app: z.string(),
      mode: z.enum(["full", "incremental", "removal"]),
      reason: z.string(),
      written: z.int(),
      deleted: z.int(),
      unchanged: z.int(),
      bytes: z.int(),
      seconds: z.number(),
    }),
  ),
);
export type BuildRecord = Readonly<z.output<ReturnType<typeof historySchema>>[number]>;

/** The last builds first; none when the history is missing or damaged. */
export function readHistory(out: string): readonly BuildRecord[] {
  return parseJson(readText(join(out, HISTORY)) ?? "[]", historySchema()) ?? [];
}

/** An incremental build that has changed no file is not worth a line. `part` is an unused path on the same disk. */
export function addToHistory(out: string, builtAt: Date, reports: readonly AppReport[], part: string): void {
  const telling = reports.filter(({ mode, written, deleted }) => mode === "full" || written + deleted > 0);
  if (telling.length === 0) return;
  const fresh = telling.map(({ key, mode, reason, written, deleted, unchanged, bytes, seconds }): BuildRecord => {
    const numbers = { written, deleted, unchanged, bytes, seconds };
    return { built_at: builtAt.toISOString(), app: key, mode, reason, ...numbers };
  });
  const counts = new Map<string, number>();
  const kept = [...fresh, ...readHistory(out)].filter(({ app }) => {
    counts.set(app, (counts.get(app) ?? 0) + 1);
    return (counts.get(app) as number) <= MOST_OF_APP;
  });
  const lines = kept.slice(0, MOST).map((record) => JSON.stringify(record));
  writeAtomic(out, HISTORY, `[\n${lines.join(",\n")}\n]\n`, part);
}
