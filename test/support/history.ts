/**
 * Generates and runs histories of content: edits, transactions that stay open, and builds between them. After each
 * build, the tree is compared with one that is built from scratch from the same content.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { type BuildOptions, buildTree } from "../../cli/builder/build.ts";
import { verifyApp } from "../../cli/commands/verify.ts";
import { segment } from "../../shared/api/address.ts";
import { readApps } from "../../shared/apps.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import {
  type Change,
  changesBetween,
  changesProblems,
  leftoverProblems,
  type Report,
  readFiles,
  reportProblems,
  stateProblems,
  type TreeFiles,
  touchProblems,
  treeProblems,
} from "./build-problems.ts";
import { arbitraryEdit, arbitraryEditOrTruncate, arbitraryStart, type Edit, readKnown, type Start } from "./edits.ts";
import { openApiServer, type Store } from "./site.ts";

/** What is built after a step: all apps, one of them, all in full, or nothing. */
type Scope = "all" | "one" | "full" | "none";

export type Step = { readonly scope: Scope; readonly toString: () => string } & (
  | { readonly do: "edit"; readonly edits: readonly Edit[] }
  /** A transaction that writes and stays open; `undone` is written after a savepoint, and rolled back to it. */
  | { readonly do: "open"; readonly edits: readonly Edit[]; readonly undone: Edit | null }
  | { readonly do: "close"; readonly which: number; readonly commit: boolean }
  /** An edit that commits during the build, after this number of its queries. */
  | { readonly do: "meanwhile"; readonly edit: Edit; readonly queries: number }
  /** Sets the media base URL of this build and all later ones. */
  | { readonly do: "media"; readonly media: string }
);

export type History = { readonly start: Start; readonly steps: readonly Step[] };

export function arbitraryHistory(concurrent: boolean, maxLength: number): fc.Arbitrary<History> {
  const scope = fc.oneof(
    { weight: 10, arbitrary: fc.constant<Scope>("all") },
    { weight: 2, arbitrary: fc.constant<Scope>("none") },
    { weight: 1, arbitrary: fc.constant<Scope>("one") },
    { weight: 1, arbitrary: fc.constant<Scope>("full") },
  );
  // Mostly one edit for each build: of several, one could hide what another does wrong.
  const edits = fc.oneof(
    { weight: 3, arbitrary: arbitraryEditOrTruncate().map((edit) => [edit]) },
    { weight: 1, arbitrary: fc.array(arbitraryEditOrTruncate(), { minLength: 2, maxLength: 3 }) },
  );
  const openEdits = fc.array(arbitraryEdit(), { minLength: 1, maxLength: 2 });
  const edit = fc.record({ do: fc.constant("edit" as const), scope, edits });
  const media = fc.constantFrom("https://media.test", "https://other.test/");
  const others = fc.record({ do: fc.constant("media" as const), scope, media });
  const open = fc.record({
    do: fc.constant("open" as const),
    scope,
    edits: openEdits,
    undone: fc.option(arbitraryEdit()),
  });
  const close = fc.record({
    do: fc.constant("close" as const),
    scope,
    which: fc.nat({ max: 3 }),
    commit: fc.nat({ max: 3 }).map((number) => number > 0),
  });
  const meanwhile = fc.record({
    do: fc.constant("meanwhile" as const),
    scope: fc.constant<Scope>("all"),
    edit: arbitraryEdit(),
    queries: fc.integer({ min: 3, max: 40 }),
  });
  const step = concurrent
    ? fc.oneof(
        { weight: 10, arbitrary: edit },
        { weight: 4, arbitrary: open },
        { weight: 4, arbitrary: close },
        { weight: 2, arbitrary: meanwhile },
        { weight: 1, arbitrary: others },
      )
    : fc.oneof({ weight: 12, arbitrary: edit }, { weight: 1, arbitrary: others });
  const steps = fc.array(step.map(described), { minLength: Math.min(4, maxLength), maxLength, size: "max" });
  return fc.record({ start: arbitraryStart(), steps });
}

type Described<T> = T & { readonly toString: () => string };

function described<T extends Record<string, unknown>>(step: T): Described<T> {
  const words = Object.entries(step).map(
    ([name, value]) => `${name}: ${Array.isArray(value) ? value.join("; ") : value}`,
  );
  return { ...step, toString: () => words.join(", ") };
}

type OpenWriter = { readonly close: (commit: boolean) => Promise<string> };

/** The errors that an edit may cause: a lock timeout, a deadlock, and violations of unique and check constraints. */
const REFUSALS = ["55P03", "40P01", "23505", "23514"];

export type HistoryRun = {
  readonly apply: (step: Step) => Promise<void>;
  /** Commits the open transactions, and builds a last time. */
  readonly end: () => Promise<void>;
  /** Rolls back the open transactions. */
  readonly quit: () => Promise<void>;
  readonly counts: { readonly edits: number; readonly refused: number; readonly builds: number };
};

/** Empties the database, writes the initial content and builds it. */
export async function startHistoryRun(store: Store, start: Start): Promise<HistoryRun> {
  const { database } = store;
  const out = join(mkdtempSync(join(store.folder, "tale-")), "out");
  const open: OpenWriter[] = [];
  const log: string[] = [];
  const counts = { edits: 0, refused: 0, builds: 0 };
  /** The built apps by key, each with its id in the database and its media base URL at the time of its last build. */
  let built = new Map<string, string>();
  let media = "https://media.test";

  async function write(edit: Edit, session: Session): Promise<void> {
    const script = edit.write(await readKnown(session));
    if (script !== "") await session.execute(script);
  }
  async function tryWrite(edit: Edit): Promise<void> {
    counts.edits++;
    const refusal = await refused(() =>
      database.transaction("write", async (session) => {
        await session.execute("SET LOCAL lock_timeout = '50ms'");
        await write(edit, session);
      }),
    );
    if (refusal !== null) counts.refused++;
    log.push(`${edit}${refusal === null ? "" : ` (refused: ${refusal})`}`);
  }

  /** Resolves when the transaction has written; it stays open. */
  function openWriter(edits: readonly Edit[], undone: Edit | null): Promise<OpenWriter> {
    let decide: (commit: boolean) => void = () => {};
    const decision = new Promise<boolean>((resolve) => {
      decide = resolve;
    });
    return new Promise((resolve, reject) => {
      const ended = database.transaction("write", async (session) => {
        await session.execute("SET LOCAL lock_timeout = '50ms'");
        for (const edit of edits) await writeBehindSavepoint(edit, session, true);
        if (undone !== null) await writeBehindSavepoint(undone, session, false);
        resolve({
          close: async (commit) => {
            decide(commit);
            return (await refused(() => ended)) ?? "committed";
          },
        });
        if (!(await decision)) throw Object.assign(new Error("rolled back"), { code: REFUSALS[0] });
      });
      ended.catch(reject);
    });
  }
  async function writeBehindSavepoint(edit: Edit, session: Session, keep: boolean): Promise<void> {
    await session.execute("SAVEPOINT edit");
    const refusal = await refused(() => write(edit, session));
    await session.execute(keep && refusal === null ? "RELEASE SAVEPOINT edit" : "ROLLBACK TO SAVEPOINT edit");
  }

  async function apply(step: Step): Promise<void> {
    log.push(`— ${step.do}${step.scope === "all" ? "" : `, build ${step.scope}`}`);
    let meanwhile: Meanwhile = null;
    if (step.do === "edit") for (const edit of step.edits) await tryWrite(edit);
    if (step.do === "media") media = step.media;
    if (step.do === "open" && open.length < 3) {
      log.push(`${step.edits.join("; ")}${step.undone === null ? "" : `; and to be undone: ${step.undone}`}`);
      open.push(await openWriter(step.edits, step.undone));
    }
    if (step.do === "close") {
      const [writer] = open.splice(step.which % Math.max(open.length, 1), 1);
      if (writer !== undefined) log.push(`${step.which}: ${await writer.close(step.commit)}`);
    }
    if (step.do === "meanwhile") meanwhile = { queries: step.queries, run: () => tryWrite(step.edit) };
    if (step.scope !== "none") await build(step.scope, meanwhile);
  }

  async function build(scope: Scope, meanwhile: Meanwhile): Promise<void> {
    counts.builds++;
    const known = await readKnown(database);
    const rows = new Map(known.map((app) => [app.key, `${app.id} ${app.media ?? media}`]));
    const all = [...rows.keys()].sort();
    const only = scope === "one" && all.length > 0 ? [all[counts.builds % all.length] as string] : null;
    const options = {
      out,
      apps: only,
      full: scope === "full",
      dryRun: false,
      mediaBaseUrl: media,
      now: () => new Date(),
    };

    const scratch = await fromScratch(options);
    const before = readFiles(out);
    const promised = counts.builds % 4 === 0 ? await runBuild(database, { ...options, dryRun: true }) : null;
    const untouched = promised === null ? [] : touchProblems(before, readFiles(out));
    const reports = await runBuild(interrupted(database, meanwhile), options);
    const after = readFiles(out);

    const wanted =
      only === null
        ? scratch
        : replaced(
            before,
            scratch,
            only.map((key) => `${segment(key)}/`),
          );
    const keys = [...new Set([...all, ...built.keys()])].sort();
    const real = changesBetween(before, after, keys);
    const standing = only === null ? all : [...new Set([...built.keys(), ...only])];
    const problems = [
      ...treeProblems(wanted, after, out),
      ...touchProblems(before, after),
      ...(only ?? keys).flatMap((key) =>
        reportProblems(
          reports.find((one) => one.key === key),
          key,
          real,
          after,
        ),
      ),
      ...(only ?? all).flatMap((key) => stateProblems(out, key, after)),
      ...(only ?? all).flatMap((key) => modeProblems(reports, key, rows, scope)),
      ...changesProblems(out, real),
      ...leftoverProblems(out, standing),
      ...untouched.map((problem) => `in a dry run ${problem}`),
      ...(promised === null || meanwhile !== null ? [] : promiseProblems(promised, reports)),
      ...(counts.builds % 5 === 0 && meanwhile === null && only === null ? await verifyProblems(media) : []),
      ...(counts.builds % 7 === 0 && only === null ? await answerProblems(real, after) : []),
    ];
    built = new Map(standing.map((key) => [key, (only?.includes(key) === false ? built : rows).get(key) ?? ""]));
    if (problems.length > 0) throw new Error(`${problems.join("\n")}\n\nbehind this history:\n${log.join("\n")}`);
  }

  async function fromScratch(options: BuildOptions): Promise<TreeFiles> {
    const folder = mkdtempSync(join(store.folder, "scratch-"));
    await runBuild(database, { ...options, out: folder });
    const files = readFiles(folder);
    rmSync(folder, { recursive: true });
    return files;
  }

  /** A build must be incremental where an app has the id and the media base URL of its last build. */
  function modeProblems(reports: readonly Report[], key: string, rows: ReadonlyMap<string, string>, scope: Scope) {
    const report = reports.find((one) => one.key === key);
    const same = built.get(key) !== undefined && built.get(key) === rows.get(key);
    const wanted = scope === "full" || !built.has(key) ? "full" : same ? "incremental" : report?.mode;
    const problems =
      report?.mode === wanted ? [] : [`${key} should be built ${wanted}: ${report?.mode}, ${report?.reason}`];
    return report?.mode === "full" && !report.reason
      ? [...problems, `${key} is built in full without a reason`]
      : problems;
  }

  async function verifyProblems(mediaBaseUrl: string): Promise<string[]> {
    return database.transaction("read", async (session) => {
      const problems: string[] = [];
      for (const app of await readApps(session, { mediaBaseUrl })) {
        const { differences } = await verifyApp(session, app, { out, sample: 40 });
        problems.push(...differences.map((difference) => `verify finds ${JSON.stringify(difference)}`));
      }
      return problems;
    });
  }

  /** Where the real server answers the request of an added or changed file with anything but the bytes of the file. */
  async function answerProblems(real: readonly Change[], after: TreeFiles): Promise<string[]> {
    mkdirSync(join(store.folder, "ledger"), { recursive: true });
    const api = await openApiServer(store, out);
    try {
      const problems: string[] = [];
      for (const { change, app, request, file } of real) {
        if (change === "gone") continue;
        const { status, text } = await api.get(request, { appKey: app });
        const is = Buffer.from(text, "utf8").toString("latin1");
        if (status !== 200 || is !== after.get(file)?.bytes)
          problems.push(`${request} gives ${status} ${text}, unlike ${file}`);
      }
      return [...problems.slice(0, 4), ...api.errors.map(String)];
    } finally {
      await api.close();
    }
  }

  async function quit(): Promise<void> {
    for (const writer of open.splice(0)) await writer.close(false);
  }

  await database.execute("DELETE FROM precast.apps");
  await database.transaction("write", (session) => session.execute(start.script));
  await build("all", null);
  return {
    apply,
    end: async () => {
      for (const writer of open.splice(0)) log.push(`at the end: ${await writer.close(true)}`);
      await build("all", null);
    },
    quit,
    counts,
  };
}

/** The error code with which the database refuses; null when it does not. */
async function refused(run: () => Promise<unknown>): Promise<string | null> {
  try {
    await run();
    return null;
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === undefined || !REFUSALS.includes(code)) throw error;
    return code;
  }
}

type Meanwhile = { readonly queries: number; readonly run: () => Promise<void> } | null;

/** A database that runs `meanwhile` after a given number of queries within transactions. */
function interrupted(database: Database, meanwhile: Meanwhile): Database {
  if (meanwhile === null) return database;
  let asked = 0;
  const watched = (session: Session): Session => ({
    ...session,
    query: async (query) => {
      const rows = await session.query(query);
      if (++asked === meanwhile.queries) await meanwhile.run();
      return rows;
    },
  });
  return {
    ...database,
    transaction: (access, run) => database.transaction(access, (session) => run(watched(session))),
  };
}

export async function runBuild(database: Database, options: BuildOptions): Promise<Report[]> {
  return (await buildTree(database, options)) as unknown as Report[];
}

/** A tree in which the files of some apps are taken from another tree. */
function replaced(tree: TreeFiles, other: TreeFiles, folders: readonly string[]): TreeFiles {
  const isOther = (path: string) => folders.some((folder) => path.startsWith(folder));
  return new Map([...[...tree].filter(([path]) => !isOther(path)), ...[...other].filter(([path]) => isOther(path))]);
}

/** Where a dry run announces something else than the build then does. */
function promiseProblems(promised: readonly Report[], done: readonly Report[]): string[] {
  const summary = (reports: readonly Report[]) =>
    JSON.stringify(
      reports.map(({ key, mode, added, changed, deleted, written, unchanged }) => {
        return { key, mode, added, changed, deleted, written, unchanged };
      }),
    );
  const [should, is] = [summary(done), summary(promised)];
  return should === is ? [] : [`a dry run promises ${is} where the build does ${should}`];
}
