/** `precast openapi`: writes the OpenAPI document of an app's API. */

import type { App } from "../../shared/api/catalog.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import { defineCommand } from "../command.ts";
import { readChosenApp, withDatabase } from "../database.ts";
import { describeApi } from "../openapi/document.ts";
import { type Examples, readBuiltExamples, readStoredExamples } from "../openapi/examples.ts";
import { deliverText } from "../types/generated.ts";
import { readInput } from "../types/source.ts";

export const openapiCommand = defineCommand({
  name: "openapi",
  describes:
    "write the OpenAPI 3.1 document of an app's API, with examples from its entries; exit code 2 when --check finds an old one",
  argument: "[folder]",
  database: "unused with an argument",
  settings: ["app", "openapiFile", "check"],
  examples: [
    "precast openapi --app atlas --write openapi.json",
    "precast openapi out --app atlas > openapi.json",
    "precast openapi --app atlas --write openapi.json --check",
  ],
  run: async ({ terminal }, settings, folder) => {
    const { app, examples } = await readApi(folder, settings);
    const text = `${JSON.stringify(describeApi(app, examples), null, 2)}\n`;
    const { openapiFile: file, check } = settings;
    return deliverText(terminal, { command: "openapi", text, report: { app: app.key } }, { file, check });
  },
});

type Api = { readonly app: App; readonly examples: Examples };

/** A bundle has no examples: what is in it may not be what an answer shows. */
async function readApi(folder: string, settings: Settings<CommonName | "app">): Promise<Api> {
  if (folder !== "") {
    const { app } = await readInput(folder, { ...settings, values: false });
    return { app, examples: readBuiltExamples(folder, app) };
  }
  return withDatabase(settings, (database) =>
    database.transaction("read", async (session) => {
      const app = await readChosenApp(session, settings.app, settings);
      return { app, examples: await readStoredExamples(session, app) };
    }),
  );
}
