/** Edits of the `work` benchmark: one published entry of an app, or of every app in one transaction. */
import type { Client } from "pg";

/** The first published entry of every app gets another summary; or only that of the app with this key. */
const EDIT = `UPDATE precast.entries AS entry SET data = data || jsonb_build_object('summary', $1::text)
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id
CROSS JOIN LATERAL (
  SELECT id FROM precast.entries WHERE content_type_id = type.id AND status = 'published' ORDER BY id LIMIT 1) AS first
WHERE entry.content_type_id = type.id AND entry.id = first.id AND ($2::text IS NULL OR app.key = $2)`;

let edits = 0;

/** Returns when its commit was sent, in milliseconds since 1970. */
export async function editApps(client: Client, app: string | null): Promise<number> {
  await client.query("BEGIN");
  const { rowCount } = await client.query(EDIT, [`Edit ${++edits}.`, app]);
  if (rowCount === 0) throw new Error(`There is no entry of ${app ?? "any app"} to edit.`);
  const at = performance.timeOrigin + performance.now();
  await client.query("COMMIT");
  return at;
}
