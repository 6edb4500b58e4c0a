/** Makes types in other languages from the JSON Schema, with quicktype. */
import { InputData, JSONSchemaInput, quicktype } from "quicktype-core";

/** Options of quicktype for each language: plain data, with the reading of JSON that the language itself has. */
const OPTIONS = {
  swift: { "access-level": "public", "struct-or-class": "struct", initializers: "false" },
  kotlin: { framework: "kotlinx", package: "precast" },
  dart: { "null-safety": "true", "final-props": "true" },
} as const;

export type Language = keyof typeof OPTIONS;
export const LANGUAGES = Object.keys(OPTIONS) as Language[];

/** `schema` is the text of a document with `$defs`. */
export async function writeLanguage(language: Language, schema: string): Promise<string> {
  const input = new JSONSchemaInput(undefined);
  // All definitions at once: one by one, each would get copies of those that it refers to, under other names.
  await input.addSource({ name: "Answers", schema, uris: ["#/$defs/"] });
  const inputData = new InputData();
  inputData.addInput(input);
  const { lines } = await quicktype({ inputData, lang: language, rendererOptions: OPTIONS[language] });
  return `${lines.join("\n").trimEnd()}\n`;
}
