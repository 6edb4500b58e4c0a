/** Verifies a tree: compares each file with the live answer to its request, and the folder with the expected files. */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { join } from "node:path";
import { type Address, fileOf, folderOf, requestOf } from "../../shared/address.ts";
import { DEFAULT_CACHE_POLICY } from "../../shared/answer.ts";
import type { App } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { answerLive } from "../../shared/live.ts";
import { isRefusal } from "../../shared/refusal.ts";
import { answerOf, respond, type Sources } from "../../shared/respond.ts";
import type { SlotCache } from "../../shared/sql/slots.ts";
import { freeAnswers } from "../build/answers/answers.ts";
import { countFiles } from "../build/answers/totals.ts";
import { readElsewhere } from "../build/elsewhere.ts";
import type { FileDigest, FileDigests } from "../build/file-digest.ts";
import type { FileProgress } from "../build/meter.ts";
import { isFile, readOrNull, readText } from "../build/stage/file.ts";
import { filesIn } from "../build/stage/folder.ts";
import { readPublished, showsUnpublished } from "./unpublished.ts";

export type Difference = {
  readonly app: string;
  readonly problem: "missing" | "surplus" | "differs" | "shows an unpublished entry";
  /** Path relative to the folder of the app. */
  readonly file: string;
};

export type VerifyOptions = {
  readonly out: string;
  /** Maximum number of answers to compute live, spread evenly over all files; null for all. */
  readonly sample: number | null;
  readonly onProgress?: (progress: FileProgress) => void;
};

export type Verified = {
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
  const root = join(out, folderOf(app.key));
  const differences: Difference[] = [];
  const note = (problem: Difference["problem"], file: string) => differences.push({ app: app.key, problem, file });
  const totalFiles = await countFiles(session, app);
  const sampleSize = Math.min(sample ?? totalFiles, totalFiles);
  const published = await readPublished(session, app);
  const elsewhere: FileDigests = readElsewhere(out) ?? new Map();
  const expected = new Set<string>();
  const slots: SlotCache = new Map();
  let computed = 0;
  let bytes = 0;

  for await (const batch of freeAnswers(session, app)) {
    for (const { address, body } of batch) {
      const file = fileOf(address);
      const content = readExactly(join(root, file));
      // Over all `totalFiles` files this is true exactly `sampleSize` times.
      const isChosen = (expected.size * sampleSize) % totalFiles < sampleSize;
      const live = isChosen ? await computeLive(session, app, address, slots) : null;
      if (live !== null) computed++;
      expected.add(file);
      const problem = problemOf(content, elsewhere.get(`${folderOf(app.key)}/${file}`), body, live);
      if (problem !== null) note(problem, file);
      bytes += Buffer.byteLength(content ?? "");
      onProgress?.({ done: expected.size, total: totalFiles, bytes });
    }
  }
  for (const file of absentFilesOf(out, app.key, elsewhere)) {
    if (!expected.has(file)) note("surplus", file);
  }
  for (const file of filesOf(out, app.key)) {
    if (!expected.has(file)) note("surplus", file);
    if (showsUnpublished(file, readText(join(root, file)) ?? "", published)) note("shows an unpublished entry", file);
  }
  return { key: app.key, files: expected.size, computed, differences };
}

/** `content` is that of the file, null when it is not here. `deployed` identifies a file that is only at the target. */
function problemOf(
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
export function verifyRemovedApp(out: string, key: string): Verified {
  const files = [...filesOf(out, key)];
  return { key, files: 0, computed: 0, differences: files.map((file) => ({ app: key, problem: "surplus", file })) };
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
function* filesOf(out: string, key: string): Generator<string> {
  const folder = folderOf(key);
  for (const path of filesIn(out, folder)) yield path.slice(folder.length + 1);
}

/** The files of an app that are only where the tree was deployed: paths relative to the folder of the app. */
function absentFilesOf(out: string, key: string, elsewhere: FileDigests): string[] {
  const folder = `${folderOf(key)}/`;
  const absent = [...elsewhere.keys()].filter((path) => path.startsWith(folder) && !isFile(join(out, path)));
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
  const response = await respond({ method: "GET", target: requestOf(address), appKey: app.key }, sources);
  return String(answerOf(response, DEFAULT_CACHE_POLICY, undefined).body);
}
