/** Decides which content types the collections of a source become: as the bundle defines them already, or as inferred. */
import { join } from "node:path";
import type { Field } from "../../shared/api/catalog.ts";
import { readText } from "../../shared/files.ts";
import { readType } from "../import/definition.ts";
import { namePath, TYPES } from "../import/folder.ts";
import { addProblem, ImportProblems, noProblems } from "../import/report.ts";
import type { BundleType } from "../import/shape.ts";
import { type FindNamed, type Inferred, inferFields, type LeftOut, splitSign } from "./inference.ts";
import type { Keys } from "./keys.ts";
import { makeLabel, makeSlug, makeUnique } from "./names.ts";
import type { Collection } from "./spool.ts";
import type { Wanted } from "./values.ts";

/** A field of the source, and what becomes of it. */
export type DefinedField = {
  readonly source: string;
  readonly field: Field;
  readonly wanted: Wanted;
  readonly why: string;
};

export type DefinedType = {
  readonly collection: Collection;
  readonly slug: string;
  readonly definition: BundleType;
  /** Whether the definition was in the bundle already: then it is kept as it is. */
  readonly isKept: boolean;
  readonly fields: readonly DefinedField[];
  readonly leftOut: readonly LeftOut[];
};

/** Throws ImportProblems when a definition of the bundle is invalid. */
export function defineTypes(
  collections: readonly Collection[],
  keys: ReadonlyMap<string, Keys>,
  bundle: string,
): DefinedType[] {
  const slugs = nameCollections(collections);
  const findNamed: FindNamed = (values, names) => {
    const all = [...values];
    return names.find((name) => all.length > 0 && all.every((value) => keys.get(name)?.find(value) != null)) ?? null;
  };
  return collections.map((collection) => {
    const slug = slugs.get(collection.name) as string;
    const inferred = inferFields(collection.facts, {
      collection: collection.name,
      collections: collections.map(({ name }) => name),
      records: collection.records,
      declared: collection.declared.fields ?? [],
      findNamed,
    });
    const kept = readKept(bundle, slug);
    return kept === null ? defineNew(collection, slug, inferred, slugs) : defineKept(collection, slug, inferred, kept);
  });
}

/** The slug of each collection's content type. */
function nameCollections(collections: readonly Collection[]): ReadonlyMap<string, string> {
  const slugs = new Map<string, string>();
  for (const { name } of collections) slugs.set(name, makeUnique(makeSlug(name), new Set(slugs.values()), "-"));
  return slugs;
}

function readKept(bundle: string, slug: string): BundleType | null {
  const file = namePath(TYPES, slug);
  const text = readText(join(bundle, file));
  if (text === null) return null;
  const read = readType(text, slug);
  if ("value" in read) return read.value;
  const problems = noProblems();
  for (const fault of read.faults) addProblem(problems, file, read.line, fault);
  throw new ImportProblems(problems);
}

function defineNew(
  collection: Collection,
  slug: string,
  inferred: readonly (Inferred | LeftOut)[],
  slugs: ReadonlyMap<string, string>,
): DefinedType {
  const found = inferred.filter((one) => "type" in one);
  const unknown = found.filter(({ target }) => target !== null && !slugs.has(target));
  const sound = found.filter((one) => !unknown.includes(one));
  const fields = sound.map((one) => defineField(one, slugs.get(one.target ?? "") ?? null));
  const withUse = (use: "filterable" | "sortable") => sound.filter((one) => one[use]).map(({ name }) => name);
  const definition: BundleType = {
    slug,
    name: collection.declared.name ?? makeLabel(collection.name),
    description: collection.declared.description ?? "",
    icon: "document",
    position: null,
    published: true,
    default_sort: null,
    per_page: null,
    summary_fields: null,
    fields: fields.map(({ field }) => field),
    filterable_fields: withUse("filterable"),
    sortable_fields: withUse("sortable"),
  };
  const leftOut = [
    ...inferred.filter((one) => !("type" in one)),
    ...unknown.map(({ source, target }) => ({ source, why: `leads to ${target}, which this source lacks` })),
  ];
  return { collection, slug, definition, isKept: false, fields, leftOut };
}

function defineField(one: Inferred, target: string | null): DefinedField {
  const { name, type, label, required, searchable, multiple, separator, dayFirst } = one;
  const field = { name, type, label, required, searchable, multiple, target };
  return { source: one.source, field, wanted: { type, multiple, target, separator, dayFirst }, why: one.why };
}

/** A field that the definition lacks is left out: that is how people leave one out. */
function defineKept(
  collection: Collection,
  slug: string,
  inferred: readonly (Inferred | LeftOut)[],
  definition: BundleType,
): DefinedType {
  const fields: DefinedField[] = [];
  const leftOut: LeftOut[] = [];
  for (const one of inferred) {
    const field = "name" in one ? definition.fields.find(({ name }) => name === one.name) : undefined;
    if (!("type" in one)) leftOut.push(one);
    else if (field === undefined)
      leftOut.push({ source: one.source, why: `${namePath(TYPES, slug)} has no field "${one.name}"` });
    else {
      const facts = collection.facts.get(one.source);
      const separator = field.multiple ? (one.separator ?? (facts === undefined ? null : splitSign(facts))) : null;
      const { type, multiple, target } = field;
      const wanted = { type, multiple, target, separator, dayFirst: one.dayFirst };
      fields.push({ source: one.source, field, wanted, why: `as ${namePath(TYPES, slug)} says` });
    }
  }
  return { collection, slug, definition, isKept: true, fields, leftOut };
}
