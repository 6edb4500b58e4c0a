/** Reads a changed content type, and puts it in the place of the one that an app has. */
import { basename } from "node:path";
import { type App, compareTypes, findType } from "../../shared/api/catalog.ts";
import { ConfigError } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import { readText } from "../../shared/files.ts";
import { hiddenTypesQuery } from "../../shared/sql/tree.ts";
import { readType } from "../import/definition.ts";
import { addProblem, ImportProblems, noProblems } from "../import/report.ts";
import type { BundleType } from "../import/shape.ts";

/** Throws ConfigError for a file that cannot be read, and ImportProblems for one that is no content type. */
export function readModel(file: string): BundleType {
  const text = readText(file);
  if (text === null) throw new ConfigError([`--model ${file} cannot be read: name the file of a content type.`]);
  const found = readType(text, basename(file, ".json"));
  if ("value" in found) return found.value;
  const problems = noProblems();
  for (const fault of found.faults) addProblem(problems, file, found.line, fault);
  throw new ImportProblems(problems);
}

/** As an import would: with `prune`, fields that the model lacks are gone, without it they follow the others. */
export function applyModel(app: App, { published, ...model }: BundleType, prune: boolean): App {
  const old = findType(app, model.slug);
  const left = (old?.fields ?? []).filter(({ name }) => !model.fields.some((field) => field.name === name));
  const type = { ...model, fields: [...model.fields, ...(prune ? [] : left)] };
  const others = app.types.filter(({ slug }) => slug !== model.slug);
  return { ...app, types: published ? [...others, type].sort(compareTypes) : others };
}

/**
 * A type that is not published has no answers yet, and only an import can publish it: a build reads the entries of
 * published types alone. Throws ConfigError.
 */
export async function refuseHidden(session: Session, { key }: App, { slug, published }: BundleType): Promise<void> {
  const hidden = (await session.query(hiddenTypesQuery(key))).flat();
  if (published && hidden.includes(slug))
    throw new ConfigError([
      `--model would publish ${slug}, which is not published: plan a bundle with it, precast plan <bundle>.`,
    ]);
}
