/** Plans what to upload and delete, and in which order: a client must never follow a link to a missing file. */
import { type FileDigest, isStatePath } from "../../shared/tree.ts";
import type { StoreContents } from "./journal.ts";
import type { Plan, PlannedFile } from "./manifest.ts";

export function planDeploy(
  files: ReadonlyMap<string, FileDigest>,
  { certain, uncertainPaths, visiblePaths }: Pick<StoreContents, "certain" | "uncertainPaths" | "visiblePaths">,
): Plan {
  const writes: PlannedFile[] = [];
  for (const [path, digest] of files) {
    if (certain.get(path)?.sha256 !== digest.sha256) writes.push({ path, ...digest, isNew: !visiblePaths.has(path) });
  }
  const removes = [...new Set([...certain.keys(), ...uncertainPaths])].filter((path) => !files.has(path)).sort();
  return {
    writes: inSteps(writes, WRITE_STEPS, ({ path, isNew }) => writeStep(path, isNew)),
    removes: inSteps(removes, REMOVE_STEPS, removeStep),
    unchanged: files.size - writes.length,
  };
}

export function isEmpty({ writes, removes }: Plan): boolean {
  return writes.length === 0 && removes.length === 0;
}

/**
 * The order of a build. New pages come before the lists whose `last_page` leads to them; the first page of a type is
 * one of those lists, even if it is new.
 */
const WRITE_STEPS = ["entry", "new list", "list", "schema", "catalog", "state"] as const;
const REMOVE_STEPS = ["state", "catalog", "schema", "first page", "list", "entry"] as const;

function inSteps<T, S extends string>(all: readonly T[], steps: readonly S[], stepOf: (one: T) => S): T[][] {
  return steps.map((step) => all.filter((one) => stepOf(one) === step)).filter((some) => some.length > 0);
}

function kindOf(path: string): "state" | "catalog" | "schema" | "entry" | "list" {
  if (isStatePath(path)) return "state";
  if (path.endsWith("/v1/_schemas.json")) return "catalog";
  if (path.includes("/v1/_schemas/")) return "schema";
  return /^[^/]+\/v1\/[^/]+\/entry\//.test(path) ? "entry" : "list";
}

function writeStep(path: string, isNew: boolean): (typeof WRITE_STEPS)[number] {
  const kind = kindOf(path);
  return kind === "list" && isNew && !isFirstPage(path) ? "new list" : kind;
}

function removeStep(path: string): (typeof REMOVE_STEPS)[number] {
  const kind = kindOf(path);
  return kind === "list" && isFirstPage(path) ? "first page" : kind;
}

function isFirstPage(path: string): boolean {
  return path.endsWith("/page/1.json");
}
