/**
 * What is there before a command is tested: content in its database, a tree in its folder. They come to be in the process of the
 * test, as the program makes them: to start it takes longer than what it has to do here.
 */
import { mkdtempSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildTree } from "../../cli/build/build.ts";
import { withDatabase } from "../../cli/database.ts";
import { importBundle } from "../../cli/import/write.ts";
import { COMMON, type CommonName, readSettings, type Settings } from "../../shared/config.ts";
import { writeBundle } from "./content.ts";
import type { Bundle } from "./model-bundle.ts";

/** Where a command would run, and what it would be given. */
export type Ground = { readonly folder: string; readonly env: Readonly<Record<string, string>> };

/** As `import --prune`. */
export async function layContent(ground: Ground, bundle: Bundle): Promise<void> {
  const folder = mkdtempSync(join(ground.folder, "bundle-"));
  await writeBundle(folder, bundle);
  await withDatabase(settingsOf(ground), (database) => importBundle(database, folder, { prune: true, dryRun: false }));
}

/** As `build --out`. */
export async function layTree(ground: Ground, out: string): Promise<void> {
  const settings = { ...settingsOf(ground), out: resolve(ground.folder, out) };
  const options = { ...settings, apps: null, full: false, dryRun: false, now: () => new Date() };
  await withDatabase(settings, (database) => buildTree(database, options));
}

function settingsOf({ folder, env }: Ground): Settings<CommonName> {
  const settings = readSettings(COMMON, {}, env);
  return { ...settings, dataDir: resolve(folder, settings.dataDir), out: resolve(folder, settings.out) };
}
