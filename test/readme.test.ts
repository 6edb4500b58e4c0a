/** The READMEs match the program: links work, the map is complete, options and variables are those of the help. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildBench } from "./bench/build.ts";
import { liveBench } from "./bench/live.ts";
import { serveBench } from "./bench/serve.ts";
import { soakBench } from "./bench/soak.ts";
import { workersBench } from "./bench/workers.ts";
import { openPlace, type Place } from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MAP_OF = ["shared", "cli", "server"];

/** Paths relative to the root. Those of folders end with a slash. */
function below(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [`${path}/`, ...below(path)] : [path];
  });
}

const READMES = [
  "README.md",
  ".github/CONTRIBUTING.md",
  "shared/contract.md",
  ...[...MAP_OF, "test"].flatMap(below).filter((path) => path.endsWith("/README.md")),
];
const TEXTS = new Map(READMES.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));

function textOf(path: string): string {
  return TEXTS.get(path) as string;
}

/** The anchors that GitHub gives to headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe.each(READMES)("%s", (path) => {
  test("has no broken link to a file or a heading", () => {
    const links = [...textOf(path).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
    const dead = links.filter(([, file = "", anchor]) => {
      const target = file === "" ? path : relative(ROOT, join(ROOT, dirname(path), file));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor);
    });
    expect(dead.map(([link]) => link)).toEqual([]);
  });
});

test("the README of the repository links to all others", () => {
  const linked = [...textOf("README.md").matchAll(/\]\(([^)#]*\.md)\)/g)].map(([, file]) => file);
  expect(new Set(linked)).toEqual(new Set([...READMES.slice(1), "CHANGELOG.md"]));
});

test("the map of the code lists every folder, and every file directly in `shared`, `cli` and `server`", () => {
  const map: readonly string[] = textOf("shared/README.md").match(/[\w.-]+\/?/g) ?? [];
  const names = MAP_OF.flatMap(below).filter((path) => path.endsWith("/") || /^\w+\/[\w-]+\.ts$/.test(path));
  const sources = names.filter((path) => !path.startsWith("cli/demo/"));
  expect(sources.length).toBeGreaterThan(40);
  const last = (path: string) => (path.match(/[^/]+\/?$/)?.[0] ?? path) as string;
  expect(sources.filter((path) => !map.includes(last(path)))).toEqual([]);
});

test("every invariant names a test that exists", () => {
  const [, invariants = ""] = textOf("shared/README.md").split("## What never happens");
  const named = [...invariants.matchAll(/`(test\/[^`]+)`(?: "([^"]+)")?/g)];
  expect(named.length).toBeGreaterThan(12);
  const exists = (path: string, name: string) =>
    existsSync(join(ROOT, path)) && readFileSync(join(ROOT, path), "utf8").includes(name);
  expect(named.filter(([, path = "", name = ""]) => !exists(path, name))).toEqual([]);
});

test("the code of every refusal is listed with its status", () => {
  const source = readFileSync(join(ROOT, "shared/api/errors.ts"), "utf8");
  const codes = [...source.matchAll(/^ {2}([A-Z_]+): (\d{3}),$/gm)];
  expect(codes.length).toBeGreaterThan(20);
  const rows = textOf("shared/contract.md").split("\n");
  const isListed = (code: string, status: string) =>
    rows.some((row) => row.startsWith(`| ${status} |`) && row.includes(`\`${code}\``)) ||
    textOf("server/README.md").includes(`\`${status} ${code}\``);
  const missing = codes.filter(([, code = "", status = ""]) => !isListed(code, status));
  expect(missing.map(([, code]) => code)).toEqual([]);
});

describe("commands, options and variables in READMEs", () => {
  const helps = new Map<string, string>();
  let nowhere: Place;
  beforeAll(async () => {
    nowhere = openPlace();
    const { stdout } = await nowhere.run("--help");
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) \[options\]/gm)].map(([, command]) => command as string);
    for (const command of commands) helps.set(command, (await nowhere.run(`${command} --help`)).stdout);
  });
  afterAll(() => nowhere.close());

  /** Inline code, and the lines of code blocks. */
  function typedIn(text: string): string[] {
    const blocks = [...text.matchAll(/^```\w*\n(.*?)^```/gms)].flatMap(([, block = ""]) => block.split("\n"));
    const spans = [...text.replace(/^```.*?^```/gms, "").matchAll(/`([^`\n]+)`/g)].map(([, span]) => span as string);
    return [...blocks, ...spans];
  }

  const optionsIn = (typed: string): readonly string[] => typed.match(/(?<![\w-])--[a-z][a-z-]+/g) ?? [];

  test.each(READMES)("%s shows a command only with options of that command", (path) => {
    const wrong = typedIn(textOf(path)).flatMap((typed) => {
      const [, command = "", rest = ""] = /(?:^|\W)precast ([a-z]+)(.*)$/.exec(typed) ?? [];
      const known = optionsIn(helps.get(command) ?? "");
      return helps.has(command) ? optionsIn(rest).filter((option) => !known.includes(option)) : [];
    });
    expect(wrong).toEqual([]);
  });

  test.each(READMES)("%s names only options of a command or of a benchmark", (path) => {
    const benches = [buildBench, serveBench, liveBench, workersBench, soakBench].map(({ help }) => help);
    const known = optionsIn([...helps.values(), ...benches].join("\n"));
    const named = typedIn(textOf(path)).filter((typed) => typed.startsWith("--"));
    expect(named.flatMap(optionsIn).filter((option) => !known.includes(option))).toEqual([]);
  });

  test.each(READMES)("%s names only environment variables that the help lists", (path) => {
    const known = [...helps.values()].join("\n");
    const named = textOf(path).match(/\b(?:PRECAST|AWS|CLOUDFLARE|FASTLY|CLOUDFRONT)_[A-Z_]+\b/g) ?? [];
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });
});
