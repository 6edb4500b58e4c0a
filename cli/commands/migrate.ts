/** `precast migrate`: creates or upgrades the database schema. */
import { openDatabase } from "../../shared/database/open.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { DONE, defineCommand } from "../command.ts";
import { databaseOptions, requireKnownSchema, requireSuitable } from "../database.ts";

export const migrateCommand = defineCommand({
  name: "migrate",
  describes: "create or upgrade the tables of Precast in the database",
  argument: null,
  settings: [],
  examples: ["precast migrate --database-url postgres://cms@db.internal/cms"],
  run: async ({ terminal }, settings) => {
    const database = await openDatabase(databaseOptions(settings));
    try {
      await requireSuitable(database);
      await requireKnownSchema(database);
      const applied = await migrate(database);
      terminal.say(applied.length === 0 ? "The schema is up to date." : `Applied ${applied.join(", ")}.`);
      if (settings.json) terminal.result("", { applied });
      return DONE;
    } finally {
      await database.close();
    }
  },
});
