/** The READMEs keep up with the program: links lead somewhere, the map is whole, options and variables are those of the help. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildBench } from "./bench/build.ts";
import { liveBench } from "./bench/live.ts";
import { serveBench } from "./bench/serve.ts";
import { soakBench } from "./bench/soak.ts";
import { openPlace, type Place } from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MAP_OF = ["shared", "cli", "server"];

/** Paths from the root, of folders with a slash at the end. */
function below(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [`${path}/`, ...below(path)] : [path];
  });
}

const READMES = ["README.md", ...[...MAP_OF, "test"].flatMap(below).filter((path) => path.endsWith("/README.md"))];
const TEXTS = new Map(READMES.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));

function textOf(path: string): string {
  return TEXTS.get(path) as string;
}

/** As GitHub names headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe.each(READMES)("%s", (path) => {
  test("links to what is there", () => {
    const links = [...textOf(path).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
    const dead = links.filter(([, file = "", anchor]) => {
      const target = file === "" ? path : relative(ROOT, join(ROOT, dirname(path), file));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor);
    });
    expect(dead.map(([link]) => link)).toEqual([]);
  });
});

test("the first README leads to all others", () => {
  const linked = [...textOf("README.md").matchAll(/\]\(([^)#]*README\.md)\)/g)].map(([, file]) => file);
  expect(new Set(linked)).toEqual(new Set(READMES.slice(1)));
});

test("the map has every folder, and every file that stands in `shared` itself", () => {
  const map = textOf("README.md").split("## The code")[1] as string;
  const names = MAP_OF.flatMap(below).filter((path) => path.endsWith("/") || /^shared\/[\w-]+\.ts$/.test(path));
  const sources = names.filter((path) => !path.startsWith("cli/demo/"));
  expect(sources.length).toBeGreaterThan(60);
  const last = (path: string) => /[^/]+\/?$/.exec(path)?.[0] as string;
  expect(sources.filter((path) => !map.split(/\s+/).includes(last(path)))).toEqual([]);
});

describe("what is typed", () => {
  const helps = new Map<string, string>();
  let nowhere: Place;
  beforeAll(async () => {
    nowhere = openPlace();
    const { stdout } = await nowhere.run("--help");
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) \[options\]/gm)].map(([, command]) => command as string);
    for (const command of commands) helps.set(command, (await nowhere.run(`${command} --help`)).stdout);
  });
  afterAll(() => nowhere.close());

  /** What stands between backticks, and the lines of code. */
  function typedIn(text: string): string[] {
    const blocks = [...text.matchAll(/^```\w*\n(.*?)^```/gms)].flatMap(([, block = ""]) => block.split("\n"));
    const spans = [...text.replace(/^```.*?^```/gms, "").matchAll(/`([^`\n]+)`/g)].map(([, span]) => span as string);
    return [...blocks, ...spans];
  }

  const optionsIn = (typed: string): readonly string[] => typed.match(/(?<![\w-])--[a-z][a-z-]+/g) ?? [];

  test.each(READMES)("by %s of a command are options of that command", (path) => {
    const wrong = typedIn(textOf(path)).flatMap((typed) => {
      const [, command = "", rest = ""] = /(?:^|\W)precast ([a-z]+)(.*)$/.exec(typed) ?? [];
      const known = optionsIn(helps.get(command) ?? "");
      return helps.has(command) ? optionsIn(rest).filter((option) => !known.includes(option)) : [];
    });
    expect(wrong).toEqual([]);
  });

  test.each(READMES)("by %s as an option is one of a command or of a bench", (path) => {
    const benches = [buildBench, serveBench, liveBench, soakBench].map(({ help }) => help);
    const known = optionsIn([...helps.values(), ...benches].join("\n"));
    const named = typedIn(textOf(path)).filter((typed) => typed.startsWith("--"));
    expect(named.flatMap(optionsIn).filter((option) => !known.includes(option))).toEqual([]);
  });

  test.each(READMES)("by %s into the environment is a variable of the help", (path) => {
    const known = [...helps.values()].join("\n");
    const named = textOf(path).match(/\b(?:PRECAST|AWS|CLOUDFLARE|FASTLY|CLOUDFRONT)_[A-Z_]+\b/g) ?? [];
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });
});
