/** The formats that can be converted, each with its reader, which is loaded only when it is asked for. */
import type { SourceReader } from "./record.ts";

const READERS = {
  markdown: async () => (await import("./formats/markdown.ts")).readMarkdown,
  csv: async () => (await import("./formats/csv.ts")).readCsv,
  json: async () => (await import("./formats/json.ts")).readJson,
  wordpress: async () => (await import("./formats/wordpress.ts")).readWordpress,
  contentful: async () => (await import("./formats/contentful.ts")).readContentful,
  sanity: async () => (await import("./formats/sanity.ts")).readSanity,
  directus: async () => (await import("./formats/directus.ts")).readDirectus,
  ghost: async () => (await import("./formats/ghost.ts")).readGhost,
  strapi: async () => (await import("./formats/strapi.ts")).readStrapi,
} as const satisfies Record<string, () => Promise<SourceReader>>;

export type Format = keyof typeof READERS;

export const FORMATS = Object.keys(READERS) as readonly Format[];

export function isFormat(name: string): name is Format {
  return Object.hasOwn(READERS, name);
}

export async function loadReader(format: Format): Promise<SourceReader> {
  return READERS[format]();
}
