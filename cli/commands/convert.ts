/** `precast convert`: makes a bundle of what another system exports, and says what became of each of its fields. */
import { basename, extname, join } from "node:path";
import { ConfigError } from "../../shared/config.ts";
import { type Context, DIFFERENT, DONE, defineCommand } from "../command.ts";
import { type Conversion, convertSource } from "../convert/convert.ts";
import { FORMATS, type Format, isFormat } from "../convert/formats.ts";
import { makeSlug } from "../convert/names.ts";
import { countLosses, describeConversion, sayConversion } from "../convert/report.ts";
import { withScratch } from "../scratch.ts";

export const convertCommand = defineCommand({
  name: "convert",
  describes: "make a bundle of what another system exports; exit code 2 when --strict finds that something is lost",
  argument: "<format> <source> <bundle>",
  values: () => FORMATS,
  settings: ["bundleApp", "locale", "unsafeHtml", "strict"],
  database: "unused",
  examples: ["precast convert csv sheets/ bundle", "precast convert json products.ndjson bundle --app shop"],
  details: () => `\nFormats: ${FORMATS.join(", ")}.`,
  run: async (context, settings, format, source = "", bundle = "") => {
    const { terminal } = context;
    const conversion = await withScratch(context, "convert", (scratch) =>
      convert(context, readFormat(format), source, bundle, { ...settings, scratch }),
    );
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
  context: Context,
  settings: ConvertSettings & { readonly strict: boolean },
  format: string,
  source: string,
  use: (bundle: string, conversion: object) => Promise<number>,
): Promise<number> {
  return withScratch(context, "import", async (folder) => {
    const bundle = join(folder, "made", makeSlug(basename(source, extname(source))));
    const conversion = await convert(context, readFormat(format), source, bundle, { ...settings, scratch: folder });
    if (settings.strict && countLosses(conversion.losses) > 0) {
      const advice = "Nothing was imported, because something would be lost: leave out --strict to import the rest.";
      context.terminal.warn(advice);
      return DIFFERENT;
    }
    return use(bundle, describeConversion(conversion));
  });
}

/** Throws ConfigError with the formats that there are. */
function readFormat(name: string): Format {
  if (isFormat(name)) return name;
  const fault = `${JSON.stringify(name)} is no format that can be converted; the formats are ${FORMATS.join(", ")}.`;
  throw new ConfigError([fault]);
}

async function convert(
  { terminal }: Context,
  format: Format,
  source: string,
  bundle: string,
  { scratch, bundleApp, locale, unsafeHtml, mediaBaseUrl }: ConvertSettings & { readonly scratch: string },
): Promise<Conversion> {
  const progress = terminal.progress("kB");
  const options = { scratch, appKey: bundleApp, locale, sanitize: !unsafeHtml, mediaBaseUrl };
  const observed = progress === null ? options : { ...options, onProgress: progress.update };
  const conversion = await convertSource(format, source, bundle, observed).finally(() => progress?.stop());
  sayConversion(terminal, conversion);
  return conversion;
}
