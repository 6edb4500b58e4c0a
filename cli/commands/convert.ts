/** `precast convert`: makes a bundle of what another system exports, and says what became of each of its fields. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import { remove } from "fs-extra/esm";
import { ConfigError } from "../../shared/config.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { type Conversion, convertSource } from "../convert/convert.ts";
import { FORMATS, type Format, isFormat } from "../convert/formats.ts";
import { makeSlug } from "../convert/names.ts";
import { countLosses, describeConversion, sayConversion } from "../convert/report.ts";
import type { Terminal } from "../terminal.ts";

export const convertCommand = defineCommand({
  name: "convert",
  describes: "make a bundle of what another system exports; exit code 2 when --strict finds that something is lost",
  argument: "<format> <source> <bundle>",
  values: () => FORMATS,
  settings: ["bundleApp", "locale", "unsafeHtml", "strict"],
  database: "unused",
  examples: ["precast convert csv sheets/ bundle", "precast convert json products.ndjson bundle --app shop"],
  details: () => `\nFormats: ${FORMATS.join(", ")}.`,
  run: async ({ terminal }, settings, format, source = "", bundle = "") => {
    const conversion = await convert(terminal, readFormat(format), source, bundle, settings);
    const lost = countLosses(conversion.losses);
    const next = `precast import ${bundle}`;
    terminal.say(`\nNext: run \`${next}\`.`);
    if (settings.json) terminal.result("", { ...describeConversion(conversion), next });
    return settings.strict && lost > 0 ? DIFFERENT : DONE;
  },
});

type ConvertSettings = {
  readonly bundleApp: string | null;
  readonly locale: string | null;
  readonly unsafeHtml: boolean;
  readonly mediaBaseUrl: string | null;
};

/**
 * Converts into a bundle that is removed again, and passes it on; with `strict` only when nothing is lost. The app's key
 * is made from the name of the source where none is given.
 */
export async function withConverted(
  terminal: Terminal,
  settings: ConvertSettings & { readonly strict: boolean },
  format: string,
  source: string,
  use: (bundle: string, conversion: object) => Promise<number>,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "precast-import-"));
  try {
    const bundle = join(folder, makeSlug(basename(source, extname(source))));
    const conversion = await convert(terminal, readFormat(format), source, bundle, settings);
    if (settings.strict && countLosses(conversion.losses) > 0) {
      terminal.warn("Nothing was imported, because something would be lost: leave out --strict to import the rest.");
      return DIFFERENT;
    }
    return await use(bundle, describeConversion(conversion));
  } finally {
    await remove(folder);
  }
}

/** Throws ConfigError with the formats that there are. */
function readFormat(name: string): Format {
  if (isFormat(name)) return name;
  const fault = `${JSON.stringify(name)} is no format that can be converted; the formats are ${FORMATS.join(", ")}.`;
  throw new ConfigError([fault]);
}

async function convert(
  terminal: Terminal,
  format: Format,
  source: string,
  bundle: string,
  { bundleApp, locale, unsafeHtml, mediaBaseUrl }: ConvertSettings,
): Promise<Conversion> {
  const progress = terminal.progress("kB");
  const options = { appKey: bundleApp, locale, sanitize: !unsafeHtml, mediaBaseUrl };
  const observed = progress === null ? options : { ...options, onProgress: progress.update };
  const conversion = await convertSource(format, source, bundle, observed).finally(() => progress?.stop());
  sayConversion(terminal, conversion);
  return conversion;
}
