/** How the checks of `precast doctor` judge what a test cannot create: large types, long times, server settings. */
import { describe, expect, test } from "vitest";
import { reportText } from "../../cli/commands/doctor.ts";
import type { Finding } from "../../cli/doctor/check.ts";
import { filtersCheck, sampleShare, savingsCheck, slotsCheck, timeoutsCheck } from "../../cli/doctor/content.ts";
import { trigramsCheck } from "../../cli/doctor/indexes.ts";
import { replicationCheck, serverCheck, snapshotsCheck } from "../../cli/doctor/server.ts";
import { bloatCheck, deadRowsCheck, statisticsCheck } from "../../cli/doctor/tables.ts";
import { openTerminal } from "../../cli/terminal.ts";
import type { App } from "../../shared/api/catalog.ts";
import { fieldOf, typeOf } from "../support/types.ts";

const subjects = (findings: readonly Finding[]) => findings.map(({ subject }) => subject);

const TITLE = fieldOf("title", "text", { searchable: true });
const TYPE = typeOf("posts", [TITLE], { filterable_fields: ["title"] });
const APP: App = { key: "shop", name: "", media_base_url: "", types: [TYPE] };
const size = (entries: number, type = TYPE) => ({ app: APP, type, entries });

describe("a filter with nearly as many values as entries", () => {
  const judge = (entries: number, values: number, exact = true) =>
    filtersCheck.judge([{ ...size(entries), exact, filters: [{ column: TITLE, values, entries }] }]);

  test.each([
    ["no finding for few files", 900, 900, []],
    ["no finding when entries share values", 20_000, 15_000, []],
    ["information for some files", 5_000, 4_900, ["information"]],
    ["advice for many files", 20_000, 19_000, ["advice"]],
  ])("is judged by its numbers of files and values: %s", (_, entries, values, kinds) => {
    expect(judge(entries, values).map(({ kind }) => kind)).toEqual(kinds);
  });

  test("is reported with its share of the type's files, and with 'about' when the number is an estimate", () => {
    // 20,000 entries, 1,000 pages, 6 sorts, 1 schema, and 20,000 filters.
    expect(judge(20_000, 20_000)[0]?.problem).toMatch(/^The field has 20,000 values .*: 49 % of/);
    expect(judge(200_000, 199_000, false)[0]?.problem).toMatch(/^The field has about 199,000 values /);
  });
});

test("a sample is read of a type that fills much of the table, and all of a type that does not", () => {
  expect(sampleShare(1_000_000, 1_200_000)).toBe(0.05);
  expect(sampleShare(60_000, 60_000)).toBeCloseTo(0.83, 2);
  // A sample is taken of the table of all types: that of one among two hundred would be 10,000,000 entries.
  expect(sampleShare(60_000, 12_000_000)).toBe(1);
  expect(sampleShare(40_000, 40_000)).toBe(1);
});

test("a field without a slot is advice if it is sortable, else information, with the reason and a remedy", () => {
  const slotless = [
    { name: "ninth", type: "text" as const, namedIn: ["sortable_fields" as const], isLong: false },
    { name: "story", type: "text" as const, namedIn: ["default_sort" as const], isLong: true },
    { name: "shelf", type: "relation" as const, namedIn: ["filterable_fields" as const], isLong: false },
    { name: "size", type: "number" as const, namedIn: ["filterable_fields" as const], isLong: false },
  ];
  const found = slotsCheck.judge([{ ...size(20_000), typeId: "7", slotless }]);
  expect(found.map(({ kind, subject }) => `${kind} ${subject}`)).toEqual([
    "advice shop/posts: ninth",
    "advice shop/posts: story",
    "information shop/posts: shelf",
    "information shop/posts: size",
  ]);
  expect(found[0]?.problem).toBe(
    "The field has no slot, because all slots are taken: a sort by it reads 20,000 entries.",
  );
  // A text that is short enough alone can be too long together with the others of its entry.
  expect(found[1]?.problem).toMatch(
    / too long for an index, .* \(more than 2,000 bytes\) .* \(more than 2,400 bytes\): a sort/,
  );
  // Numbers are in no index of values; and each field type shares slots only with the types that its remedy names.
  expect(found[2]?.problem).toMatch(/: a filter on it, except eq and in with up to 8 values, reads 20,000 entries\.$/);
  expect(found[3]?.problem).toMatch(/: a filter on it reads 20,000 entries\.$/);
  expect(found[2]?.remedy).toMatch(
    /^Remove a text, select, media, relation, date or datetime field that no client uses/,
  );
  expect(found[3]?.remedy).toMatch(/^Remove a number or boolean field that no client uses/);
  expect(found[1]?.remedy).toMatch(/^Remove it from default_sort, or name a field with shorter texts there\. /);
  // The statement changes the slots of this type only.
  expect(found[1]?.remedy).toContain(" - 'story') WHERE content_type_id = 7; SELECT precast.assign_slots(7);");
});

describe("a table", () => {
  const table = {
    name: "precast.entries",
    rows: 100_000,
    dead: 0,
    modified: 0,
    pages: 4_000,
    knownPages: 4_000,
    visiblePages: 4_000,
    hasStatistics: true,
    readable: true,
    hasOwnerRights: true,
  };

  test.each([
    ["in good condition", {}],
    ["with many dead rows that are few beside its live ones", { dead: 25_000 }],
    ["with many dead rows on few pages", { rows: 100, dead: 50_000, pages: 99, knownPages: 99, visiblePages: 99 }],
    ["with some rows written since it was analysed", { modified: 21_000 }],
    ["with few pages and no statistics", { hasStatistics: false, pages: 49, knownPages: 49, visiblePages: 49 }],
    ["half of whose pages are all-visible", { visiblePages: 2_000 }],
  ])("%s gives no finding", (_, well) => {
    const judged = [{ ...table, ...well }];
    expect([...statisticsCheck.judge(judged), ...deadRowsCheck.judge(judged)]).toEqual([]);
  });

  test.each([
    ["it was never analysed", { hasStatistics: false }, /never analysed/],
    ["many rows were changed since", { modified: 30_000 }, /^30,000 rows .* about 100,000 rows/],
    [
      "it has grown, although no writes were counted",
      { pages: 5_000, visiblePages: 5_000 },
      /grown from 4,000 pages to 5,000/,
    ],
  ])("with old statistics gives the advice to run ANALYZE: %s", (_, sick, problem) => {
    const [found] = statisticsCheck.judge([{ ...table, ...sick }]);
    expect(found).toMatchObject({ kind: "advice", fix: ["ANALYZE precast.entries"] });
    expect(found?.problem).toMatch(problem);
  });

  test.each([
    ["dead rows", { dead: 50_000 }, /^50,000 of its 150,000 rows are dead \(33 %\)/],
    ["pages that are not all-visible", { visiblePages: 1_000 }, /^3,000 of its 4,000 pages/],
  ])("with %s gives the advice to run VACUUM", (_, sick, problem) => {
    const [found] = deadRowsCheck.judge([{ ...table, ...sick }]);
    expect(found).toMatchObject({ kind: "advice", fix: ["VACUUM (TRUNCATE false) precast.entries"] });
    expect(found?.problem).toMatch(problem);
  });

  test("of another owner gives a remedy for the owner, and no fix", () => {
    const [found] = statisticsCheck.judge([{ ...table, hasStatistics: false, hasOwnerRights: false }]);
    expect(found).toMatchObject({
      fix: null,
      remedy: expect.stringMatching(/^Have the owner .* ANALYZE precast\.entries/),
    });
  });
});

describe("the requests of the last days", () => {
  const row = (app: string, count: number, more: { status?: number; saving?: string } = {}) => {
    return { app, day: "2026-01-20", shape: "list", status: 200, saving: "", count, ...more };
  };

  test.each([
    ["100 of 2,000 that could be free", [row("shop", 1_900), row("shop", 100, { saving: "page" })], true],
    ["100 of 2,001 that could be free", [row("shop", 1_901), row("shop", 100, { saving: "page" })], false],
    ["99 that could be free", [row("shop", 99, { saving: "page" })], false],
  ])("are a reason to change a client if they are many and a twentieth of all: %s", (_, rows, isReason) => {
    expect(subjects(savingsCheck.judge(rows))).toEqual(isReason ? ["shop: requests that could be free"] : []);
  });

  test("that timed out ten times are reported for their app, with the number of all of its shape", () => {
    const late = { status: 504 };
    const rows = [row("shop", 90), row("shop", 10, late), row("blog", 1_000), row("blog", 9, late)];
    const found = timeoutsCheck.judge(rows);
    expect(subjects(found)).toEqual(["shop: slow list requests"]);
    expect(found[0]?.problem).toMatch(/^10 of 100 requests in the last 30 days got 504 QUERY_TIMEOUT/);
  });
});

describe("the server check", () => {
  const MB = 1024 * 1024;
  const well = { buffers: 4_096 * MB, bytes: 10_000 * MB, autovacuum: true, free: 97, connections: 10, workers: 1 };

  test.each([
    ["in good condition", {}, []],
    ["with the default shared_buffers and a large database", { buffers: 128 * MB }, ["shared_buffers"]],
    ["with the default shared_buffers and a small database", { buffers: 128 * MB, bytes: 500 * MB }, []],
    ["without autovacuum", { autovacuum: false }, ["autovacuum"]],
    ["with too few free connections", { free: 15 }, ["Connections"]],
    ["with just enough free connections", { free: 16 }, []],
    ["with too few connections for a ledger of each worker", { free: 18, workers: 4 }, ["Connections"]],
    ["with just enough connections for four workers", { free: 19, workers: 4 }, []],
    ["with too few connections for more workers than live queries", { free: 44, workers: 20 }, ["Connections"]],
    ["with just enough connections for more workers than live queries", { free: 45, workers: 20 }, []],
  ])("a server %s gives the findings that apply to it", (_, sick, expected) => {
    expect(subjects(serverCheck.judge({ ...well, ...sick }))).toEqual(expected);
  });

  test("a finding about memory gives sizes in the unit that fits", () => {
    const [found] = serverCheck.judge({ ...well, buffers: 128 * MB });
    expect(found?.problem).toMatch(/10\.5 GB.* 134\.2 MB/);
  });

  test("the embedded database, which has no server, gives no finding", () => {
    expect(serverCheck.judge(null)).toEqual([]);
  });
});

test("a transaction that has been open for half an hour is advice, with the statement that ends it", () => {
  const transaction = {
    what: "A transaction of report (process 7, idle in transaction)",
    endStatement: "SELECT pg_terminate_backend(7)",
  };
  expect(snapshotsCheck.judge([{ ...transaction, minutes: 29 }])).toEqual([]);
  const [found] = snapshotsCheck.judge([{ ...transaction, minutes: 31.5 }]);
  expect(found).toMatchObject({ kind: "advice", fix: null, problem: expect.stringMatching(/report .* 31 minutes/) });
  expect(found?.remedy).toContain("pg_terminate_backend(7)");
});

describe("replication", () => {
  const slot = {
    name: "west",
    dropStatement: "SELECT pg_drop_replication_slot('west')",
    isRead: true,
    walBytes: 0,
    transactions: 0,
  };

  test.each([
    ["a slot that is read", { walBytes: 5_000_000_000 }, []],
    ["a slot whose reader has been away for a moment", { isRead: false, walBytes: 900_000_000 }, []],
    ["a slot without a reader that keeps much WAL", { isRead: false, walBytes: 5_000_000_000 }, ["5.0 GB of WAL"]],
    ["a slot without a reader that keeps dead rows", { isRead: false, transactions: 200_000 }, ["last 200,000 tr"]],
    ["a slot whose reader keeps dead rows", { transactions: 200_000 }, ["A query on it keeps the rows that died"]],
  ])("%s", (_, sick, problems) => {
    const found = replicationCheck.judge({ slots: [{ ...slot, ...sick }], standbys: [] });
    expect(found.map(({ problem }) => problem)).toEqual(problems.map((problem) => expect.stringContaining(problem)));
    expect(found.every(({ kind, fix }) => kind === "advice" && fix === null)).toBe(true);
  });

  test("a slot without a reader is advice with the statement that drops it", () => {
    const [found] = replicationCheck.judge({ slots: [{ ...slot, isRead: false, walBytes: 1e10 }], standbys: [] });
    expect(found?.remedy).toContain("SELECT pg_drop_replication_slot('west')");
  });

  test("a replica without a slot is advice only while a query there keeps the rows of many transactions", () => {
    const judge = (transactions: number) =>
      replicationCheck.judge({ slots: [], standbys: [{ name: "east", transactions }] });
    expect([subjects(judge(99_999)), subjects(judge(100_000))]).toEqual([[], ["Replica east"]]);
  });
});

test("indexes are bloated if they take more than twice what they need, and waste much together", () => {
  const index = (name: string, bytes: number, needed: number) => {
    return { name, bytes: bytes * 1e6, needed: needed * 1e6, hasOwnerRights: true };
  };
  const judge = (...indexes: ReturnType<typeof index>[]) => subjects(bloatCheck.judge(indexes));
  expect(judge(index("a", 190, 100), index("b", 30, 10))).toEqual([]);
  expect(judge(index("a", 190, 100), index("b", 43, 10))).toEqual(["b: bloat"]);
  expect(judge(index("a", 25, 8), index("b", 25, 8), index("c", 9, 8))).toEqual(["a: bloat", "b: bloat"]);
});

describe("a trigram index", () => {
  const missing = {
    missing: ["pg_trgm", "terms_by_part"],
    available: true,
    mayCreate: true,
    operators: "gin_trgm_ops",
    types: [size(50_000)],
  };
  const words = "every different word of a type for a search";
  const entries = "every entry of a type for a contains filter";

  test.each([
    ["that exists", { missing: [] }],
    ["that is missing while all types are small", { types: [size(500)] }],
    [
      "that is missing while no large type is searchable",
      { types: [size(50_000, { ...TYPE, fields: [{ ...TITLE, searchable: false }] })] },
    ],
  ])("%s gives no finding", (_, well) => {
    expect(trigramsCheck.judge({ ...missing, ...well })).toEqual([]);
  });

  test.each([
    [["pg_trgm", "terms_by_part", "entries_by_texts"], `${words} and ${entries}`],
    [["terms_by_part"], words],
    [["entries_by_texts"], entries],
  ])("that is missing is reported with what is read without it: %j", (names, read) => {
    expect(trigramsCheck.judge({ ...missing, missing: names })[0]?.problem).toBe(
      `The database reads ${read}, and the largest type has 50,000 entries.`,
    );
  });

  test("is information, with how to get it, where the server does not offer the extension", () => {
    const [found, ...others] = trigramsCheck.judge({ ...missing, available: false });
    expect([found, others]).toMatchObject([{ kind: "information", fix: null }, []]);
    expect(found?.remedy).toMatch(/^Install the package .* \(postgresql-contrib\) .*\. Run CREATE EXTENSION/);
  });

  test("for texts is missed where a large type is filtered by a text, whether or not it is searchable", () => {
    const plain = { ...TYPE, fields: [{ ...TITLE, searchable: false }] };
    const all = { ...missing, missing: ["pg_trgm", "terms_by_part", "entries_by_texts"] };
    expect(subjects(trigramsCheck.judge({ ...all, types: [size(50_000, plain)] }))).toEqual([
      "pg_trgm, entries_by_texts: missing",
    ]);
    const unfiltered = { ...TYPE, filterable_fields: [] };
    expect(subjects(trigramsCheck.judge({ ...all, types: [size(50_000, unfiltered)] }))).toEqual([
      "pg_trgm, terms_by_part: missing",
    ]);
  });

  test("that is missing gets a fix if the role may create it, else a remedy for an administrator", () => {
    expect(trigramsCheck.judge(missing)).toMatchObject([
      {
        fix: [
          "CREATE EXTENSION IF NOT EXISTS pg_trgm",
          expect.stringMatching(/^CREATE INDEX CONCURRENTLY IF NOT EXISTS terms_by_part /),
        ],
      },
    ]);
    expect(trigramsCheck.judge({ ...missing, mayCreate: false })).toMatchObject([
      { fix: null, remedy: expect.stringMatching(/^Have an administrator run CREATE EXTENSION/) },
    ]);
  });
});

test("the report shows ten findings of a check and kind, and the number of the others", async () => {
  const nobody = { write: () => {} };
  const options = { stdout: nobody, stderr: nobody, json: false, quiet: false, plain: true };
  const terminal = await openTerminal(options);
  const many = Array.from({ length: 14 }, (_, index) => ({
    check: "filters",
    kind: index < 13 ? ("information" as const) : ("advice" as const),
    subject: `type ${index}`,
    problem: "p",
    gain: "g",
    remedy: "r",
    fix: null,
  }));
  const text = reportText(many, terminal);
  expect(text.match(/^type \d+ \(for information\)$/gm)).toHaveLength(10);
  expect(text.match(/^type \d+$/gm)).toEqual(["type 13"]);
  expect(text).toMatch(/\n\n… and 3 more: --json lists all findings\.\n\n1 to change, 13 for information\.$/);
});
