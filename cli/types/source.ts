/** Reads the app that types are made for: from the database, from the folder of a bundle, or from that of a built tree. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type App, compareTypes } from "../../shared/api/catalog.ts";
import { type CommonName, ConfigError, type Settings } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import { builtAppKeys, readTreeState, STATE_FOLDER } from "../../shared/tree.ts";
import { chooseKey, readChosenApp, readRows, withDatabase } from "../database.ts";
import { readBundle } from "../import/bundle.ts";
import { APP } from "../import/folder.ts";
import { ImportProblems, noProblems } from "../import/report.ts";
import { NO_VALUES, type SelectValues } from "./names.ts";

export type TypesInput = { readonly app: App; readonly values: SelectValues };

type InputSettings = Settings<CommonName | "app" | "values">;

/** Throws ConfigError when it is not clear which app is meant, and ImportProblems when the bundle is invalid. */
export async function readInput(folder: string, settings: InputSettings): Promise<TypesInput> {
  if (folder === "")
    return withDatabase(settings, (database) =>
      database.transaction("read", (session) => readStored(session, settings)),
    );
  if (settings.values) throw new ConfigError(["--values needs the database: leave out the folder."]);
  if (existsSync(join(folder, STATE_FOLDER))) return { app: readBuilt(folder, settings), values: NO_VALUES };
  if (existsSync(join(folder, APP))) return { app: await readBundled(folder, settings), values: NO_VALUES };
  throw new ConfigError([
    `${folder} is neither a bundle (it has no ${APP}) nor a tree (it has no ${STATE_FOLDER}). Without a folder, the database is read.`,
  ]);
}

async function readStored(session: Session, settings: InputSettings): Promise<TypesInput> {
  const app = await readChosenApp(session, settings.app, settings);
  return { app, values: settings.values ? await readValues(session, app) : NO_VALUES };
}

function readBuilt(folder: string, settings: InputSettings): App {
  const keys = builtAppKeys(folder);
  if (keys.length === 0) throw new ConfigError([`No app is built in ${folder}: run \`precast build\`.`]);
  const key = chooseKey(keys, settings.app);
  const state = readTreeState(folder, key);
  if (state === null)
    throw new ConfigError([`The state of ${key} in ${folder} cannot be read: run \`precast build\`.`]);
  return state.app;
}

async function readBundled(folder: string, settings: InputSettings): Promise<App> {
  const problems = noProblems();
  const bundle = await readBundle(folder, false, problems, noProblems());
  if (problems.listed.size > 0 || bundle.app === null) throw new ImportProblems(problems);
  const { key, name, media_base_url } = bundle.app;
  chooseKey([key], settings.app);
  const types = bundle.types.filter(({ published }) => published).sort(compareTypes);
  return { key, name, media_base_url: media_base_url ?? "", types };
}

/** Of a field with more values, the type is text: nobody reads a longer union. */
const MAX_VALUES = 100;

/** The values of select fields that published entries have, in byte order. A field without values has no union. */
async function readValues(session: Session, { key }: App): Promise<SelectValues> {
  const rows = await readRows<{ slug: string; name: string; used: string[] }>(
    session,
    `SELECT type.slug, field.name, ARRAY(
  SELECT DISTINCT value COLLATE "C" FROM precast.entries AS e
  CROSS JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(e.data -> field.name)
    WHEN 'array' THEN e.data -> field.name WHEN 'string' THEN jsonb_build_array(e.data -> field.name) ELSE '[]' END) AS value
  WHERE e.content_type_id = type.id AND e.status = 'published' ORDER BY 1 LIMIT ${MAX_VALUES + 1}) AS used
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id
JOIN precast.fields AS field ON field.content_type_id = type.id AND field.type = 'select'
WHERE app.key = $1`,
    [key],
  );
  const values = new Map<string, Map<string, readonly string[]>>();
  for (const { slug, name, used } of rows) {
    if (used.length === 0 || used.length > MAX_VALUES) continue;
    const fields = values.get(slug) ?? new Map<string, readonly string[]>();
    values.set(slug, fields.set(name, used));
  }
  return values;
}
