/** The layout of the code: files import from their own floor and lower ones, and each library only in named files. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDERS = ["shared", "cli", "server"];

/** The floors from the ground up. A file may import from its own floor and from those below. */
const FLOORS: readonly (readonly RegExp[])[] = [
  [/^shared\/(async|text|sql\/query|database\/errors)\.ts$/],
  [/^shared\/api\//],
  [/^shared\/client\//],
  [/^shared\/sql\//],
  [/^shared\//],
  [/^server\//],
  [/^cli\/(command|database|errors|progress|scratch|secrets|summary|terminal|usage)\.ts$/],
  [/^cli\/(adopt|builder|convert|edge|explain|export|import|init|mcp|openapi|types)\//],
  [/^cli\/(deploy|doctor|plan)\//],
  [/^cli\/work\//],
  [/^cli\/studio\//],
  [/^cli\/(commands|serve)\//],
  [/^cli\/(configuration|program|main)\.ts$/],
];

type Import = { readonly from: string; readonly to: string };

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    // The examples are no part of the program.
    if (entry.isDirectory()) return entry.name === "examples" ? [] : sources(path);
    return /\.tsx?$/.test(path) ? [path] : [];
  });
}

const FILES = FOLDERS.flatMap(sources);
const IMPORTS: readonly Import[] = FILES.flatMap((from) => {
  const text = readFileSync(join(ROOT, from), "utf8");
  return [
    ...text.matchAll(/^(?:import|export)\b[^;]*? from "([^"]+)";$|^import "([^"]+)";$|\bimport\("([^"]+)"\)/gm),
  ].map((match) => {
    const name = (match[1] ?? match[2] ?? match[3]) as string;
    const to = name.startsWith(".") ? relative(ROOT, join(ROOT, dirname(from), name)) : name;
    return { from, to };
  });
});

function floorOf(file: string): number {
  return FLOORS.findIndex((patterns) => patterns.some((pattern) => pattern.test(file)));
}

describe("the layout", () => {
  test("every file stands on a floor", () => {
    expect(FILES.length).toBeGreaterThan(30);
    expect(FILES.filter((file) => floorOf(file) < 0)).toEqual([]);
  });

  test("a file imports only from its own floor and lower ones", () => {
    const wrong = IMPORTS.filter(({ from, to }) => /\.tsx?$/.test(to) && floorOf(to) > floorOf(from));
    expect(wrong).toEqual([]);
  });

  test("what apps import knows no platform and nothing but the API", () => {
    const imported = IMPORTS.filter(({ from }) => from.startsWith("shared/client/")).map(({ to }) => to);
    expect(imported.length).toBeGreaterThan(5);
    expect(imported.filter((to) => !/^shared\/(client|api|text\.ts)/.test(to))).toEqual([]);
  });

  test("imports have no cycles", () => {
    const left = new Set(FILES);
    const importsLeft = (file: string) => IMPORTS.some(({ from, to }) => from === file && left.has(to));
    // A file that imports none of the files that are left is in no cycle.
    for (let before = -1; before !== left.size; ) {
      before = left.size;
      for (const file of left) if (!importsLeft(file)) left.delete(file);
    }
    expect([...left]).toEqual([]);
  });

  test("cli and server do not import each other, except that `serve`, the studio and workers import the server", () => {
    const crossing = IMPORTS.filter(
      ({ from, to }) =>
        (from.startsWith("cli/") && to.startsWith("server/")) || (from.startsWith("server/") && to.startsWith("cli/")),
    );
    const files = new Set(crossing.map(({ from }) => from));
    const serving = [
      "commands/serve",
      "commands/studio",
      "serve/media-port",
      "serve/primary",
      "serve/process",
      "serve/tree-store",
      "studio/explore",
      "studio/health",
      "work/monitor",
    ];
    expect(files).toEqual(new Set(serving.map((name) => `cli/${name}.ts`)));
  });

  test.each([
    [
      "pg",
      [
        "shared/database/embedded/worker.ts",
        ...["pool", "postgres", "query", "session"].map((name) => `shared/database/postgres/${name}.ts`),
      ],
    ],
    ["@electric-sql/pglite", ["shared/database/embedded/worker.ts"]],
    ["@clack/prompts", ["cli/commands/init.ts"]],
    ["commander", ["cli/program.ts"]],
    ["cli-progress", ["cli/progress.ts"]],
    [
      "node:http",
      [
        "cli/commands/studio.ts",
        "cli/deploy/http.ts",
        "server/admin.ts",
        "server/app.ts",
        "server/http/connection.ts",
        "server/http/encode.ts",
        "server/http/listen.ts",
        "server/http/observe.ts",
        "server/media.ts",
      ],
    ],
    ["fast-glob", ["cli/convert/source.ts", "shared/files.ts"]],
    [
      "fs-extra/esm",
      [
        ...["builder/remote", "builder/stage", "commands/report", "convert/convert", "convert/media"],
        ...["deploy/restore", "deploy/target", "export/bundle", "types/generated", "work/publication"],
      ].map((name) => `cli/${name}.ts`),
    ],
    ["h3", ["cli/commands/studio.ts", "cli/studio/studio.ts", "server/admin.ts", "server/app.ts", "server/media.ts"]],
    ["listhen", ["server/http/listen.ts"]],
    ["lru-cache", ["server/cache.ts", "server/http/encode.ts"]],
    ["@modelcontextprotocol/server", ["cli/mcp/server.ts"]],
    ["@modelcontextprotocol/server/stdio", ["cli/mcp/server.ts"]],
    ["mime", ["shared/media.ts"]],
    ["negotiator", ["server/http/encode.ts"]],
    ["@streamparser/json", ["cli/convert/json-values.ts"]],
    ["csv-parse", ["cli/convert/formats/csv.ts"]],
    ["saxes", ["cli/convert/formats/wordpress-xml.ts"]],
    ["tar", ["cli/convert/archive.ts"]],
    ["@portabletext/to-html", ["cli/convert/formats/sanity-text.ts"]],
    ["@contentful/rich-text-html-renderer", ["cli/convert/formats/contentful-text.ts"]],
    ["micromark", ["cli/convert/markdown.ts"]],
    ["smol-toml", ["cli/convert/formats/markdown.ts"]],
    ["sanitize-html", ["cli/convert/html.ts"]],
    ["d3-hierarchy", ["cli/studio/page/treemap.tsx"]],
    ["preact", ["content", "data", "main", "report", "table"].map((name) => `cli/studio/page/${name}.tsx`)],
    ["uplot", ["cli/studio/page/chart.tsx"]],
    ["pino", ["server/log.ts"]],
    ["graphile-worker", ["cli/work/queue.ts", "cli/work/worker.ts"]],
    ["prom-client", ["cli/work/monitor.ts", "server/metrics.ts"]],
    ["quicktype-core", ["cli/commands/types.ts"]],
    [
      "zod",
      [
        "cli/adopt/map.ts",
        ...["changes", "history", "remote"].map((name) => `cli/builder/${name}.ts`),
        ...["layout", "lease", "manifest", "media", "purge"].map((name) => `cli/deploy/${name}.ts`),
        "cli/explain/query-plan.ts",
        "cli/import/definition.ts",
        "cli/import/shape.ts",
        "cli/mcp/server.ts",
        "server/deployed/versions.ts",
        "server/ledger/journal.ts",
        "shared/settings/common.ts",
        "shared/settings/deploying.ts",
        "shared/settings/planning.ts",
        "shared/settings/serving.ts",
        "shared/settings/working.ts",
        "shared/settings/zod.ts",
        "shared/tree-file.ts",
        "shared/tree.ts",
      ],
    ],
  ])("%s is imported only in %j", (library, homes) => {
    expect([...new Set(IMPORTS.filter(({ to }) => to === library).map(({ from }) => from))].sort()).toEqual(homes);
  });

  test("only main.ts reads the environment and the clock", () => {
    const readers = FILES.filter((file) =>
      /process\.env|Date\.now\(\)|new Date\(\)/.test(readFileSync(join(ROOT, file), "utf8")),
    );
    expect(readers).toEqual(["cli/main.ts"]);
  });

  test("every file begins with a documentation comment", () => {
    const silent = FILES.filter((file) => !/^(#!.*\n+)?\/\*\*/.test(readFileSync(join(ROOT, file), "utf8")));
    expect(silent).toEqual([]);
  });
});
