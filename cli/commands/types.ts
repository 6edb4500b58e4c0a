/** `precast types`: writes the types of an app's answers for the languages in which apps are written. */
import type { TypesLanguage } from "../../shared/settings/common.ts";
import { defineCommand } from "../command.ts";
import { deliverText } from "../types/generated.ts";
import { writeJsonSchema } from "../types/json-schema.ts";
import { nameTypes } from "../types/names.ts";
import { readInput, type TypesInput } from "../types/source.ts";
import { writeTypeScript } from "../types/typescript.ts";

export const typesCommand = defineCommand({
  name: "types",
  describes:
    "write the types of an app's answers, from the database, a bundle or a tree; exit code 2 when --check finds old ones",
  argument: "[folder]",
  database: "unused with an argument",
  settings: ["app", "lang", "values", "typesFile", "check"],
  examples: [
    "precast types --app atlas --write src/atlas.ts",
    "precast types export/blog --lang json-schema > blog.schema.json",
    "precast types --write src/atlas.ts --check",
  ],
  run: async ({ terminal }, settings, folder) => {
    const { lang, typesFile: file, check } = settings;
    const source = await readInput(folder, settings);
    const text = await writeTypes(source, lang);
    const report = { app: source.app.key, language: lang };
    return deliverText(terminal, { command: "types", text, report }, { file, check });
  },
});

async function writeTypes({ app, values }: TypesInput, language: TypesLanguage): Promise<string> {
  const named = nameTypes(app);
  if (language === "ts") return writeTypeScript(named, values);
  const schema = writeJsonSchema(named, values);
  if (language === "json-schema") return schema;
  return writeWithQuicktype(language, schema);
}

// Makes types in other languages from the JSON Schema, with quicktype.

/** Options of quicktype for each language: plain data, with the reading of JSON that the language itself has. */
const OPTIONS = {
  swift: { "access-level": "public", "struct-or-class": "struct", initializers: "false" },
  kotlin: { framework: "kotlinx", package: "precast" },
  dart: { "null-safety": "true", "final-props": "true" },
} as const;

/** `schema` is the text of a document with `$defs`. */
async function writeWithQuicktype(language: keyof typeof OPTIONS, schema: string): Promise<string> {
  // Loaded only where it is needed: it takes longer to load than all the rest.
  const { InputData, JSONSchemaInput, quicktype } = await import("quicktype-core");
  const input = new JSONSchemaInput(undefined);
  // All definitions at once: one by one, each would get copies of those that it refers to, under other names.
  await input.addSource({ name: "Answers", schema, uris: ["#/$defs/"] });
  const inputData = new InputData();
  inputData.addInput(input);
  const { lines } = await quicktype({ inputData, lang: language, rendererOptions: OPTIONS[language] });
  return `${lines.join("\n").trimEnd()}\n`;
}
