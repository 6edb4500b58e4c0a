/** Decides whether an app is built in full or from its last build, and says why. */
import { join } from "node:path";
import { fileOf, folderOf } from "../../shared/address.ts";
import type { App } from "../../shared/catalog.ts";
import { readState, stateFileOf, type TreeState } from "../../shared/state.ts";
import { VERSION } from "../../shared/version.ts";
import type { Elsewhere } from "./elsewhere.ts";
import { isSourceOf, type Source } from "./source.ts";
import { isFile, readText } from "./stage/file.ts";

export type BuildMode =
  | { readonly mode: "full"; readonly reason: string }
  | { readonly mode: "incremental"; readonly reason: string; readonly state: TreeState };

/** `fullReason` is the reason for a full build, whatever the state of the last build; null when there is none. */
export function chooseMode(
  out: string,
  app: App,
  source: Source,
  fullReason: string | null,
  { isReachable, hasBelow }: Pick<Elsewhere, "isReachable" | "hasBelow">,
): BuildMode {
  const full = (reason: string) => ({ mode: "full", reason }) as const;
  if (fullReason !== null) return full(fullReason);
  const text = readText(join(out, stateFileOf(app.key)));
  if (text === null) return full("it was not built before");
  const state = readState(text);
  if (state === null) return full("the state of its last build cannot be read");
  const incompatibility = incompatibilityOf(state, source);
  if (incompatibility !== null) return full(incompatibility);
  if (state.app.media_base_url !== app.media_base_url) return full("the address of its media has changed");
  if (!isReachable && hasBelow(folderOf(app.key))) return full("some of its files exist only at the deploy target");
  if (!firstFilesOf(state.app).every((file) => isFile(join(out, file)))) return full("files of its tree are missing");
  return { mode: "incremental", reason: `since ${state.built_at}`, state };
}

/** Why changes since the build of this state cannot be determined; null when they can. */
export function incompatibilityOf(state: TreeState, source: Pick<Source, "source" | "marks">): string | null {
  if (state.version !== VERSION) return `it was built by Precast ${state.version}`;
  if (isSourceOf(source, state)) return null;
  return state.source === source.source
    ? "the database has lost recent changes, or no longer has the record of this build"
    : "it was built from another database";
}

/**
 * The catalog and the first page of each type, relative to the tree. An incremental build checks that these are there,
 * which is enough to notice that a folder was removed.
 */
export function firstFilesOf(app: App): string[] {
  const pages = app.types.map(({ slug }) => ({ kind: "page", slug, page: 1n }) as const);
  return [{ kind: "catalog" } as const, ...pages].map((address) => `${folderOf(app.key)}/${fileOf(address)}`);
}
