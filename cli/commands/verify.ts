/** `precast verify`: compares the tree with live answers. */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { join } from "node:path";
import { type Address, nameFile, nameFolder, writeRequest } from "../../shared/api/address.ts";
import { DEFAULT_CACHE_POLICY } from "../../shared/api/answer.ts";
import type { App } from "../../shared/api/catalog.ts";
import { isRefusal } from "../../shared/api/errors.ts";
import { renderReply, respond, type Sources } from "../../shared/api/respond.ts";
import { readApps } from "../../shared/apps.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import { filesIn, isFile, readOrNull, readText } from "../../shared/files.ts";
import { answerLive } from "../../shared/live.ts";
import { changedCollations } from "../../shared/schema/drift.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { hiddenTypesQuery, publishedIdsQuery } from "../../shared/sql/tree.ts";
import { formatFiles } from "../../shared/text.ts";
import { appsOfTree, chooseApps, type FileDigest, type FileDigests, removedApps } from "../../shared/tree.ts";
import { countFiles, freeAnswers } from "../builder/answers.ts";
import type { FileProgress } from "../builder/build.ts";
import { readTreeStatus } from "../builder/delta.ts";
import { readRemoteFiles } from "../builder/remote.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { noAppText, withDatabase } from "../database.ts";

const MAX_LISTED = 100;

export const verifyCommand = defineCommand({
  name: "verify",
  describes: "compute the tree's answers live and compare them byte for byte; exit code 2 when something differs",
  argument: null,
  settings: ["apps", "sample"],
  examples: ["precast verify", "precast verify --app atlas --sample 500"],
  run: async ({ terminal }, settings) => {
    const progress = terminal.progress();
    const options = { ...settings, ...(progress === null ? {} : { onProgress: progress.update }) };
    const checked = await withDatabase(settings, (database) =>
      database.transaction("read", (session) => checkApps(session, options)),
    ).finally(() => progress?.stop());
    if (checked.length === 0) throw new Error(noAppText(settings));
    terminal.result(writeText(checked), { apps: checked.map(({ verified }) => verified) });
    return checked.some(isDifferent) ? DIFFERENT : DONE;
  },
});

/**
 * What explains differences: no tree is built, indexes are in an outdated text order, or content has changed since the
 * build. `unexplained` means that none of these does.
 */
type DifferenceCause = "not built" | "outdated order" | "content changed" | "unexplained";
/** `cause` is null when there are no differences. */
type Checked = { readonly verified: Verified; readonly cause: DifferenceCause | null };
type Options = VerifyOptions & Settings<"apps" | CommonName>;

function isDifferent({ verified }: Checked): boolean {
  return verified.differences.length > 0;
}

async function checkApps(session: Session, options: Options): Promise<Checked[]> {
  const all = await readApps(session, options);
  const checked: Checked[] = [];
  for (const app of chooseApps(all, options.apps)) {
    const verified = await verifyApp(session, app, options);
    const isClean = verified.differences.length === 0;
    checked.push({ verified, cause: isClean ? null : await findCause(session, app.key, options) });
  }
  if (options.apps !== null) return checked;
  for (const { key } of removedApps(appsOfTree(options.out), all)) {
    checked.push({ verified: await verifyRemovedApp(options.out, key), cause: "content changed" });
  }
  return checked;
}

async function findCause(session: Session, key: string, options: Options): Promise<DifferenceCause> {
  const status = await readTreeStatus(session, key, options);
  if (status === null) return "not built";
  if ((await changedCollations(session)).length > 0) return "outdated order";
  return status.current ? "unexplained" : "content changed";
}

function writeText(checked: readonly Checked[]): string {
  const built = checked.filter(({ cause }) => cause !== "not built");
  const differences = built.flatMap(({ verified }) => verified.differences);
  const listed = differences.slice(0, MAX_LISTED).map(({ app, problem, file }) => `${app} ${file}: ${problem}`);
  const rest = differences.length > MAX_LISTED ? [`… and ${differences.length - MAX_LISTED} more`] : [];
  return [...listed, ...rest, ...checked.map(summarizeApp), ...adviseOn(checked.filter(isDifferent))].join("\n");
}

function summarizeApp({ verified, cause }: Checked): string {
  const { key, files, computed, differences } = verified;
  const count = `${differences.length} ${differences.length === 1 ? "difference" : "differences"}`;
  const what = `${key}: ${formatFiles(files)}, ${computed} computed live, ${count}`;
  return cause === "not built" ? `${what}: its tree is not built` : what;
}

function adviseOn(different: readonly Checked[]): string[] {
  const causes = different.map(({ cause }) => cause);
  if (causes.includes("outdated order"))
    return [
      "A collation version has changed since the indexes of the database were built, so live answers may be wrong. Run `precast doctor` first: it says what to do.",
    ];
  if (causes.includes("unexplained"))
    return [
      "Run `precast build --full` to repair the tree. If files still differ then, content was written while triggers were off: run `SELECT precast.keep_anew()` as the owner of the tables, and build again.",
    ];
  if (causes.includes("content changed"))
    return ["Content has changed since the tree was built: run `precast build`, and verify again."];
  return causes.length > 0 ? ["Run `precast build`."] : [];
}

// Verifies a tree: compares each file with the live answer to its request, and the folder with the expected files.

type Difference = {
  readonly app: string;
  readonly problem: "missing" | "surplus" | "differs" | "shows an unpublished entry";
  /** Path relative to the folder of the app. */
  readonly file: string;
};

type VerifyOptions = {
  readonly out: string;
  /** Maximum number of answers to compute live, spread evenly over all files; null for all. */
  readonly sample: number | null;
  readonly onProgress?: (progress: FileProgress) => void;
};

type Verified = {
  readonly key: string;
  readonly files: number;
  readonly computed: number;
  readonly differences: readonly Difference[];
};

/** `session` must be in a read transaction, so that all files are compared with one snapshot of the database. */
export async function verifyApp(
  session: Session,
  app: App,
  { out, sample, onProgress }: VerifyOptions,
): Promise<Verified> {
  const root = join(out, nameFolder(app.key));
  const differences: Difference[] = [];
  const note = (problem: Difference["problem"], file: string) => differences.push({ app: app.key, problem, file });
  const totalFiles = await countFiles(session, app);
  const sampleSize = Math.min(sample ?? totalFiles, totalFiles);
  const published = await readPublished(session, app);
  const remote: FileDigests = readRemoteFiles(out) ?? new Map();
  const expected = new Set<string>();
  const slots: SlotCache = new Map();
  let computed = 0;
  let bytes = 0;

  for await (const batch of freeAnswers(session, app)) {
    for (const { address, body } of batch) {
      const file = nameFile(address);
      const content = readExactly(join(root, file));
      // Over all `totalFiles` files this is true exactly `sampleSize` times.
      const isChosen = (expected.size * sampleSize) % totalFiles < sampleSize;
      const live = isChosen ? await computeLive(session, app, address, slots) : null;
      if (live !== null) computed++;
      expected.add(file);
      const problem = findProblem(content, remote.get(`${nameFolder(app.key)}/${file}`), body, live);
      if (problem !== null) note(problem, file);
      bytes += Buffer.byteLength(content ?? "");
      onProgress?.({ done: expected.size, total: totalFiles, bytes });
    }
  }
  for (const file of findAbsentFiles(out, app.key, remote)) {
    if (!expected.has(file)) note("surplus", file);
  }
  for await (const file of filesOf(out, app.key)) {
    if (!expected.has(file)) note("surplus", file);
    if (showsUnpublished(file, readText(join(root, file)) ?? "", published)) note("shows an unpublished entry", file);
  }
  return { key: app.key, files: expected.size, computed, differences };
}

/** `content` is that of the file, null when it is not here. `deployed` identifies a file that is only at the target. */
function findProblem(
  content: string | null,
  deployed: FileDigest | undefined,
  body: string,
  live: string | null,
): Difference["problem"] | null {
  if (content !== null) return content === body && (live === null || content === live) ? null : "differs";
  if (deployed === undefined) return "missing";
  return deployed.sha256 === hash("sha256", live ?? body, "hex") ? null : "differs";
}

/** Reports all files of an app that is in the tree but no longer in the database as surplus. */
async function verifyRemovedApp(out: string, key: string): Promise<Verified> {
  const differences: Difference[] = [];
  for await (const file of filesOf(out, key)) differences.push({ app: key, problem: "surplus", file });
  return { key, files: 0, computed: 0, differences };
}

/**
 * Null when there is no file. A file that is not valid UTF-8 is read as empty text: decoding would turn its bytes into
 * replacement characters, which an answer may contain as well.
 */
function readExactly(file: string): string | null {
  const bytes = readOrNull(file);
  return bytes === null || isUtf8(bytes) ? (bytes?.toString("utf8") ?? null) : "";
}

/** Paths relative to the folder of the app. None when a file is in the place of that folder: then all are missing. */
async function* filesOf(out: string, key: string): AsyncGenerator<string> {
  const folder = nameFolder(key);
  for await (const path of filesIn(out, folder)) yield path.slice(folder.length + 1);
}

/** The files of an app that are only where the tree was deployed: paths relative to the folder of the app. */
function findAbsentFiles(out: string, key: string, remote: FileDigests): string[] {
  const folder = `${nameFolder(key)}/`;
  const absent = [...remote.keys()].filter((path) => path.startsWith(folder) && !isFile(join(out, path)));
  return absent.map((path) => path.slice(folder.length));
}

/** Sends the request through the same pipeline as a client's request, with a database and without a tree. */
async function computeLive(session: Session, app: App, address: Address, slots: SlotCache): Promise<string> {
  const sources: Sources = {
    findTree: async () => null,
    findApp: async () => app,
    answer: async (known, plan) => {
      const answered = await answerLive(session, known, plan, slots);
      return isRefusal(answered) ? answered : answered.body;
    },
    onError: (error) => {
      throw error;
    },
  };
  const response = await respond({ method: "GET", target: writeRequest(address), appKey: app.key }, sources);
  return String(renderReply(response, DEFAULT_CACHE_POLICY, undefined).body);
}

// Recognises files that show an entry which is not published: what `precast verify` must find above all.

type PublishedIds = ReadonlyMap<string, ReadonlySet<string>>;

/** The ids of published entries by the slugs of all types, unpublished ones included: those have no ids. */
async function readPublished(session: Session, app: App): Promise<PublishedIds> {
  const hidden = await session.query(hiddenTypesQuery(app.key));
  const published = new Map(hidden.map(([slug]) => [slug as string, new Set<string>()]));
  for (const { slug } of app.types) {
    const rows = await session.query(publishedIdsQuery(app.key, slug));
    published.set(slug, new Set(rows.map(([id]) => id as string)));
  }
  return published;
}

/**
 * Checks what the file of an app contains, so that files which no build wrote are found as well. Its path is relative to
 * the folder of the app.
 */
function showsUnpublished(file: string, content: string, published: PublishedIds): boolean {
  if (file.startsWith("_schemas")) return false;
  const ids = published.get(file.slice(0, file.indexOf("/")));
  // In a folder that belongs to no type, entries are accepted that are published in any type.
  const isShown = (id: string) => ids?.has(id) ?? [...published.values()].some((some) => some.has(id));
  return idsIn(content).some((id) => !isShown(id));
}

function idsIn(content: string): string[] {
  try {
    const { data } = JSON.parse(content) as { data?: { id?: unknown } | { id?: unknown }[] };
    return [data ?? []].flat().flatMap(({ id }) => (typeof id === "string" ? [id] : []));
  } catch {
    return [];
  }
}
