/** Plans the build of one app and stages it: each type in full or only what has changed, then schemas and catalog. */
import { hash } from "node:crypto";
import { join } from "node:path";
import { nameFolder } from "../../shared/api/address.ts";
import type { App, ContentType } from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { filesIn, isFolder, yieldToEventLoop } from "../../shared/files.ts";
import { countQuery } from "../../shared/sql/tree.ts";
import type { TreeState } from "../../shared/tree.ts";
import { addressIn } from "../../shared/tree-file.ts";
import { countTypeFiles, overviewAnswers, typeAnswers } from "./answers.ts";
import { openBuiltTree } from "./built.ts";
import { type BuildMode, readDeltas } from "./delta.ts";
import type { RemoteFiles } from "./remote.ts";
import { measureType, type Part } from "./size.ts";
import type { StagedApp } from "./stage.ts";
import { planUpdate } from "./update.ts";

export type AppPlan = Plan & {
  readonly app: App;
  readonly mode: BuildMode;
  readonly start: Date;
  /** How long planning took. */
  readonly seconds: number;
};

type Plan = {
  /** Number of files that the build processes. Without `Planned.count`, types that are rebuilt are left out. */
  readonly files: number;
  /** False when the app's files and state are up to date. */
  readonly isOutdated: boolean;
  /** What the tree of the app will consist of. */
  readonly parts: readonly Part[];
  /** Stages the files. Resolves with the number of entries by type slug. */
  readonly run: (staged: StagedApp) => Promise<ReadonlyMap<string, number>>;
};

/** The plan for one type. `putPaths` takes the paths of what is put, relative to the folder of the app. */
type TypePlan = {
  readonly slug: string;
  readonly total: number;
  readonly files: number;
  readonly parts: readonly Part[];
  readonly run: (staged: StagedApp, putPaths: PutPaths | null) => Promise<void>;
};

/** What is planned, and with what. */
type Planned = {
  readonly app: App;
  readonly out: string;
  readonly remote: RemoteFiles;
  /** Counts the files of types that are rebuilt, which takes queries. */
  readonly count: boolean;
  /** Bytes up to which the size of a type need not be known better. */
  readonly enough: number;
};

/** `counts` holds the numbers of entries by type slug, if the app is built in full. */
export function planApp(
  session: Session,
  planned: Planned,
  mode: BuildMode,
  counts: ReadonlyMap<string, number> | undefined,
): Promise<Plan> {
  if (mode.mode === "incremental") return planChanges(session, planned, mode.state);
  return planFull(session, planned, new Map(planned.app.types.map(({ slug }) => [slug, counts?.get(slug) ?? 0])));
}

async function planFull(session: Session, planned: Planned, counts: ReadonlyMap<string, number>): Promise<Plan> {
  const { app, out, remote } = planned;
  remote.addReplaced(nameFolder(app.key));
  const compare = isFolder(join(out, nameFolder(app.key)));
  const types: TypePlan[] = [];
  for (const type of app.types) {
    types.push(await planWholeType(session, planned, type, counts.get(type.slug) ?? 0, compare));
  }
  const run = async (staged: StagedApp) => {
    const putPaths = compare ? openPutPaths() : null;
    for (const type of types) await type.run(staged, putPaths);
    await staged.put(overviewAnswers(app, counts), compare, putPaths?.add);
    if (putPaths !== null) await removeOthers(staged, planned, "", putPaths);
    return counts;
  };
  const parts = types.flatMap((type) => type.parts);
  return { files: sumFiles(types) + app.types.length + 1, isOutdated: true, parts, run };
}

async function planChanges(session: Session, planned: Planned, state: TreeState): Promise<Plan> {
  const { app, remote } = planned;
  const root = nameFolder(app.key);
  const deltas = await readDeltas(session, app, state);
  const removedTypes = state.app.types.filter(({ slug }) => !app.types.some((type) => type.slug === slug));
  const types: TypePlan[] = [];
  for (const type of app.types) {
    const delta = deltas.get(type.slug);
    if (delta?.kind === "rebuild") types.push(await planRebuild(session, planned, type));
    if (delta?.kind === "entries") types.push(await planTypeUpdate(session, planned, type, delta.ids, state));
  }
  for (const { slug } of removedTypes) await remote.fetchBelow(`${root}/${slug}`);
  const isOutdated = types.length > 0 || JSON.stringify(app) !== JSON.stringify(state.app);
  // The build compares the catalog and all schemas with their files, and deletes the schemas of removed types.
  if (isOutdated) await remote.fetchFiles([`${root}/_schemas.json`]);
  if (isOutdated) await remote.fetchBelow(`${root}/_schemas`);
  const run = async (staged: StagedApp) => {
    for (const type of types) await type.run(staged, null);
    const totals = new Map(types.map(({ slug, total }) => [slug, total]));
    const counts = new Map(app.types.map(({ slug }) => [slug, totals.get(slug) ?? state.counts[slug] ?? 0]));
    if (isOutdated) await staged.put(overviewAnswers(app, counts), true);
    for (const { slug } of removedTypes) {
      await removeOthers(staged, planned, slug, NOTHING_PUT);
      removeFile(staged, planned, `_schemas/${slug}.json`);
    }
    return counts;
  };
  const parts = types.flatMap((type) => type.parts);
  const rest = Math.max(0, state.bytes - parts.reduce((sum, { bytes }) => sum + bytes, 0));
  const files = sumFiles(types) + (isOutdated ? app.types.length + 1 : 0);
  return { files, isOutdated, parts: [...parts, { bytes: rest, name: `what ${app.key} has already` }], run };
}

function sumFiles(types: readonly TypePlan[]): number {
  return types.reduce((sum, { files }) => sum + files, 0);
}

/** Plans a type that an incremental build rebuilds, while it may leave other types as they are. */
async function planRebuild(session: Session, planned: Planned, type: ContentType): Promise<TypePlan> {
  const { app, out, remote } = planned;
  await remote.fetchBelow(`${nameFolder(app.key)}/${type.slug}`);
  const total = Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]);
  const compare = isFolder(join(out, nameFolder(app.key), type.slug));
  const plan = await planWholeType(session, planned, type, total, compare);
  const run = async (staged: StagedApp) => {
    const putPaths = compare ? openPutPaths() : null;
    await plan.run(staged, putPaths);
    if (putPaths !== null) await removeOthers(staged, planned, type.slug, putPaths);
  };
  return { ...plan, run };
}

async function planWholeType(
  session: Session,
  { app, count, enough }: Planned,
  type: ContentType,
  total: number,
  compare: boolean,
): Promise<TypePlan> {
  const files = count ? await countTypeFiles(session, app, type, total) : 0;
  const run: TypePlan["run"] = async (staged, putPaths) => {
    for await (const answers of typeAnswers(session, app, type, total))
      await staged.put(answers, compare, putPaths?.add);
  };
  return { slug: type.slug, total, files, parts: await measureType(session, app, type, enough), run };
}

async function planTypeUpdate(
  session: Session,
  { app, out, remote }: Planned,
  type: ContentType,
  ids: readonly string[],
  state: TreeState,
): Promise<TypePlan> {
  const built = openBuiltTree(out, app.key, remote.fetchFiles);
  const before = state.counts[type.slug] ?? 0;
  const { total, files, parts, rewrites } = await planUpdate(session, app, type, built, ids, before);
  const run = async (staged: StagedApp) => {
    for await (const some of rewrites()) await staged.put(some, true);
  };
  return { slug: type.slug, total, files, parts, run };
}

/** Removes the files for which no answer was put. `below` is a folder of the app, or "" for all of it. */
async function removeOthers(
  staged: StagedApp,
  planned: Planned,
  below: string,
  putPaths: Pick<PutPaths, "has">,
): Promise<void> {
  for await (const file of filesIn(join(planned.out, nameFolder(planned.app.key)), below)) {
    if (!putPaths.has(file)) removeFile(staged, planned, file);
    await yieldToEventLoop();
  }
}

function removeFile(staged: StagedApp, { app, out }: Planned, file: string): void {
  const folder = nameFolder(app.key);
  staged.remove(`${folder}/${file}`, addressIn(join(out, folder), file));
}

// Remembers the paths of what was put, for a build over an existing tree, which removes all other files.

type PutPaths = { readonly add: (path: string) => void; readonly has: (path: string) => boolean };

const NOTHING_PUT = { has: () => false };

/**
 * Keeps 64-bit hashes in place of the paths, which would take ten times as much memory. With a million files, one that is
 * to be removed has the hash of another with a probability of 5e-14, and then stays as long as that one does.
 */
function openPutPaths(): PutPaths {
  let hashes = new BigUint64Array(1 << 10);
  let size = 0;

  /** Index at which a hash is stored, or would be. */
  const findPlace = (table: BigUint64Array, pathHash: bigint) => {
    let at = Number(pathHash & BigInt(table.length - 1));
    while (table[at] !== 0n && table[at] !== pathHash) at = (at + 1) & (table.length - 1);
    return at;
  };
  const grow = () => {
    const larger = new BigUint64Array(hashes.length * 2);
    for (const pathHash of hashes) if (pathHash !== 0n) larger[findPlace(larger, pathHash)] = pathHash;
    hashes = larger;
  };
  const add = (path: string) => {
    const pathHash = hashPath(path);
    const at = findPlace(hashes, pathHash);
    if (hashes[at] !== 0n) return;
    hashes[at] = pathHash;
    size += 1;
    if (size * 2 > hashes.length) grow();
  };
  return { add, has: (path) => hashes[findPlace(hashes, hashPath(path))] !== 0n };
}

/** Zero stands for a free place in the table. */
function hashPath(path: string): bigint {
  return hash("sha1", path, "buffer").readBigUInt64LE() || 1n;
}
