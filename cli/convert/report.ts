/** Says what became of a source: of each field, of its files, and what could not be carried. */
import { formatCounted } from "../../shared/text.ts";
import { describeProblem, type Problems } from "../import/report.ts";
import type { Terminal } from "../terminal.ts";
import type { Conversion, ConvertedType } from "./convert.ts";

/** The report as one JSON value. */
export function describeConversion({ app, types, media, losses }: Conversion): object {
  return {
    app: app.key,
    types: types.map(({ slug, entries, drafts, collection, isKept, fields, leftOut, definition }) => ({
      type: slug,
      collection: collection.name,
      entries,
      drafts,
      definition: isKept ? "kept" : "inferred",
      fields: fields.map(({ source, field, why }) => ({
        source,
        field: field.name,
        type: field.type,
        multiple: field.multiple,
        ...(field.target === null ? {} : { target: field.target }),
        filterable: definition.filterable_fields.includes(field.name),
        sortable: definition.sortable_fields.includes(field.name),
        searchable: field.searchable,
        why,
      })),
      left_out: leftOut,
    })),
    media: { copied: media.copied, missing: [...media.missing].map(([name, address]) => ({ name, address })) },
    losses: [...losses.listed.values()].map(({ file, line, message, places, count }) => ({
      file,
      line,
      message,
      places,
      count,
    })),
    more_losses: losses.others,
  };
}

/** Prints the report for a person: losses and what is missing as warnings. */
export function sayConversion(terminal: Terminal, conversion: Conversion): void {
  const { types, media, losses } = conversion;
  for (const type of types) sayType(terminal, type);
  if (media.copied > 0) terminal.say(`Copied ${formatCounted(media.copied, "file")} into media/.`);
  for (const loss of losses.listed.values()) terminal.warn(`Not carried: ${describeProblem(loss)}`);
  if (losses.others > 0) terminal.warn(`Not carried: and ${losses.others} more of other kinds.`);
  if (media.missing.size > 0) terminal.warn(describeMissing(media.missing));
}

function sayType(
  terminal: Terminal,
  { slug, entries, drafts, isKept, fields, leftOut, definition }: ConvertedType,
): void {
  const counted = formatCounted(entries, "entry", "entries");
  const told = isKept ? `, as content_types/${slug}.json defines them` : "";
  terminal.say(
    `\n${terminal.colors.bold(slug)}: ${counted}${drafts > 0 ? `, ${formatCounted(drafts, "draft")} of them` : ""}${told}`,
  );
  const rows = fields.map(({ source, field, why }) => {
    const type = `${field.type}${field.multiple ? "[]" : ""}${field.target === null ? "" : ` → ${field.target}`}`;
    const uses = [
      ...(definition.filterable_fields.includes(field.name) ? ["filter"] : []),
      ...(definition.sortable_fields.includes(field.name) ? ["sort"] : []),
      ...(field.searchable ? ["search"] : []),
    ];
    return [source, field.name, type, uses.join(" "), why];
  });
  const gone = leftOut.map(({ source, why }) => [source, "—", "", "", `left out: ${why}`]);
  if (rows.length + gone.length > 0)
    terminal.say(terminal.table(["source", "field", "type", "uses", "because"], [...rows, ...gone]));
}

function describeMissing(missing: ReadonlyMap<string, string | null>): string {
  const shown = [...missing].slice(0, 5).map(([name, address]) => (address === null ? name : `${name} (${address})`));
  const more = missing.size > shown.length ? ", …" : "";
  return `${formatCounted(missing.size, "file")} that entries name ${missing.size === 1 ? "is" : "are"} not in the source: ${shown.join(", ")}${more}. Put them into media/ of the bundle.`;
}

/** The number of values and records that could not be carried. */
export function countLosses({ listed, others }: Problems): number {
  return [...listed.values()].reduce((sum, { count }) => sum + count, others);
}
