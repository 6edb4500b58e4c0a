/** `precast adopt`: proposes a mapping from one's own tables to content types, and writes it to a file that people edit. */
import { writeFile } from "node:fs/promises";
import { APP_KEY } from "../../shared/api/catalog.ts";
import { ConfigError } from "../../shared/config.ts";
import { exists } from "../../shared/files.ts";
import { formatCounted } from "../../shared/text.ts";
import { readTables } from "../adopt/catalog.ts";
import { type SourceMap, writeMap } from "../adopt/map.ts";
import type { LeftOut } from "../adopt/preset.ts";
import { readPreset } from "../adopt/presets.ts";
import { type Proposal, proposeTypes } from "../adopt/proposal.ts";
import { chooseTables, fromSource, withSource } from "../adopt/source.ts";
import { DONE, defineCommand } from "../command.ts";
import type { Terminal } from "../terminal.ts";

export const adoptCommand = defineCommand({
  name: "adopt",
  describes: "propose content types for the tables of a PostgreSQL database, as a mapping that precast sync obeys",
  argument: "[table...]",
  database: "unused",
  settings: ["source", "map", "adoptedApp", "preset", "overwrite"],
  examples: [
    "precast adopt --from postgres://cms@db.example.com/shop",
    "precast adopt products categories --app shop",
    "precast adopt --from postgres://cms@db.example.com/cms --preset payload",
  ],
  run: async ({ terminal }, settings, ...names) => {
    const { map: file, source, databaseUrl, overwrite } = settings;
    const url = source ?? databaseUrl;
    if (url === null)
      throw new ConfigError(["--from is missing: the address of the PostgreSQL database that has the tables"]);
    if (exists(file) && !overwrite)
      throw new Error(
        `${file} is there already, and may have been edited. Replace it with --overwrite, or name another with --map.`,
      );
    const { proposal, preset } = await withSource(url, (database) =>
      fromSource(
        database.transaction("read", async (session) => {
          const tables = await readTables(session);
          const preset = await readPreset(session, tables, settings.preset);
          const asked = names.filter((name) => name !== "");
          const chosen = chooseTables(tables, asked);
          return { preset: preset.name, proposal: proposeTypes(tables, asked.length > 0 ? chosen : null, preset) };
        }),
      ),
    );
    if (proposal.types.length === 0)
      throw new Error(["No table can be adopted.", ...proposal.leftOut.map(describeLeftOut)].join("\n"));
    const app = makeApp(settings.adoptedApp, url);
    const mapped: SourceMap = { from: url === databaseUrl ? null : withoutPassword(url), app, types: proposal.types };
    await writeFile(file, writeMap(mapped));
    report(terminal, proposal, preset);
    const next = `precast sync${file === "precast.map.json" ? "" : ` --map ${file}`}`;
    terminal.say(`Next: read ${file}, correct it, and run \`${next}\`.`);
    const types = proposal.types.map(({ tables, content_type: { slug, fields } }) => ({
      type: slug,
      tables,
      fields: fields.map(({ name, type, multiple }) => ({ name, type, multiple })),
    }));
    terminal.result("", { app: app.key, map: file, preset, types, left_out: proposal.leftOut, next });
    return DONE;
  },
});

function report(terminal: Terminal, { types, leftOut }: Proposal, preset: string | null): void {
  if (preset !== null) terminal.say(`These are tables of ${preset}.`);
  for (const {
    tables,
    content_type: { slug, fields },
  } of types) {
    const names = fields.map(({ name, type, multiple }) => `${name} ${type}${multiple ? "[]" : ""}`);
    terminal.say(`${terminal.colors.bold(slug)} from ${tables.join(", ")}: ${formatCounted(fields.length, "field")}`);
    terminal.say(`  ${names.join(", ")}`);
  }
  for (const one of leftOut) terminal.warn(describeLeftOut(one));
}

function describeLeftOut({ table, column, why }: LeftOut): string {
  return `Left out: ${table}${column === null ? "" : `.${column}`}: ${why}.`;
}

function makeApp(key: string | null, url: string): SourceMap["app"] {
  const database = decodeURIComponent(new URL(url.replace("@/", "@localhost/")).pathname.slice(1));
  const found = key ?? database;
  if (!APP_KEY.test(found))
    throw new ConfigError([`--app is missing, and the name of the database, ${JSON.stringify(found)}, is no key`]);
  return { key: found, name: `${found[0]?.toUpperCase()}${found.slice(1)}`, media_base_url: null };
}

/** The mapping is a file that people share. */
function withoutPassword(url: string): string {
  return url
    .replace(/^(\w+:\/\/[^/?#:@]*):[^/?#]*@/, "$1@")
    .replace(/([?&])password=[^&]*&?/, "$1")
    .replace(/[?&]$/, "");
}
