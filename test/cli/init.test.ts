/** `precast init`, with the package as it is published: its files, what it asks, and that `npm start` answers a query. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeEntryId, TEMPLATES } from "../../cli/init/templates.ts";
import { TEMPLATE_NAMES } from "../../shared/settings/common.ts";
import { openPlace, type Place } from "../support/cli.ts";
import { unpackPackage } from "../support/package.ts";
import { unlessLacking } from "../support/root.ts";
import { endSessions, NO_TERMINAL, startSession as start, startOnTerminal } from "../support/session.ts";
import { ask } from "../support/site.ts";

let place: Place;
/** The folder in which Precast is installed, as `npm install precast` does. */
let work: string;
let main: string;

beforeAll(async () => {
  place = openPlace();
  const unpacked = await unpackPackage(place, "_npx/0/node_modules/precast");
  main = join(unpacked, "dist/cli/main.js");
  work = join(place.folder, "work");
  mkdirSync(join(work, "node_modules/.bin"), { recursive: true });
  symlinkSync(main, join(work, "node_modules/.bin/precast"));
});
afterEach(endSessions);
afterAll(() => place.close());

function readJson<T>(...path: string[]): T {
  return JSON.parse(readFileSync(join(work, ...path), "utf8")) as T;
}

describe("npx precast init site && cd site && npm start", () => {
  test.each(TEMPLATE_NAMES)("answers a query: %s", async (template) => {
    const site = `my-${template}`;
    const made = start("npx", ["precast", "init", site, "--template", template], work);
    expect([await made.ended, made.output()]).toEqual([
      0,
      expect.stringContaining(`Next: run \`cd ${site} && npm start\`.\n`),
    ]);
    const server = start("npm", ["start"], join(work, site));
    const [, url = ""] = await server.printed(/(http:\/\/[^/\s"]+).*\n/);
    for (const { slug, entries } of TEMPLATES[template]) {
      const { status, json } = await ask(url, `/api/v1/${slug}`, { appKey: site });
      expect([status, json.meta.total]).toEqual([200, entries.filter(({ isDraft }) => isDraft !== true).length]);
    }
    expect(server.output()).not.toMatch(/warn/i);
    server.signal("SIGTERM");
    await server.ended;
  });

  test("the README has ten lines, and shows a request that is answered so", () => {
    const readme = readFileSync(join(work, "my-blog/README.md"), "utf8");
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
    expect(readme).toContain("curl -H 'X-App-Key: my-blog' 'http://127.0.0.1:3000/api/v1/posts'");
    expect(readFileSync(join(work, "my-blog/.gitignore"), "utf8").split("\n")).toContain(".precast/");
  });

  test("the workflow imports, builds and verifies, with the embedded database", async () => {
    const workflow = readFileSync(join(work, "my-blog/.github/workflows/precast.yml"), "utf8");
    const [first, ...steps] = [...workflow.matchAll(/- run: (.*)$/gm)].map(([, step]) => step);
    expect(first).toBe("npm ci");
    const ran = start("sh", ["-ec", `export CI=true; ${steps.join("\n")}`], join(work, "my-blog"));
    expect([await ran.ended, ran.output()]).toEqual([
      0,
      expect.stringMatching(/my-blog: \d+ files, .* 0 differences\n$/),
    ]);
    expect(ran.output()).toMatch(/^my-blog: entries 0 created, 0 updated, \d+ unchanged, 0 deleted;/);
    const { version } = JSON.parse(readFileSync(join(main, "../../../package.json"), "utf8")) as { version: string };
    expect(readJson("my-blog", "package.json")).toMatchObject({ dependencies: { precast: version } });
  });
});

test("every relation of a template leads to an entry of its target", () => {
  const dangling = Object.entries(TEMPLATES).flatMap(([name, types]) => {
    const all = types.flatMap(({ slug, entries }) => entries.map(({ data }) => ({ slug, data })));
    const ids = new Set(all.map(({ slug, data }) => makeEntryId(slug, String(data.slug))));
    const relations = types.flatMap(({ definition }) => definition.fields.filter(({ type }) => type === "relation"));
    const links = relations.flatMap(({ name }) => all.flatMap(({ data }) => (data[name] ?? []) as string | string[]));
    return links.filter((id) => !ids.has(id)).map((id) => `${name}: ${id}`);
  });
  expect(dangling).toEqual([]);
});

describe("where nobody can be asked", () => {
  test("the folder is the current one, and the template the blog", async () => {
    const own = openPlace();
    const { folder, template, files } = await own.json<{ folder: string; template: string; files: string[] }>("init");
    expect([folder, template]).toEqual([".", "blog"]);
    expect(files.filter((path) => !existsSync(join(own.folder, path)))).toEqual([]);
    expect(files).toContain("content/content_types/posts.json");
    const { stdout } = await own.call(["init", "my site", "--template", "empty"]);
    expect(stdout).toMatch(
      /^Wrote \d+ files into my site, .*\nNext: run `cd "my site" && npm install && npm start`\.\n$/,
    );
    const app = JSON.parse(readFileSync(join(own.folder, "my site/content/app.json"), "utf8"));
    expect(app).toEqual({ key: "my-site", name: "My site" });
    await own.close();
  });

  test("a file that is there is named and kept, and nothing is written", async () => {
    const own = openPlace();
    mkdirSync(join(own.folder, "site/content"), { recursive: true });
    for (const name of ["package.json", "content/app.json"]) writeFileSync(join(own.folder, "site", name), "mine");
    const { code, stdout, stderr } = await own.call("init site");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr.split("\n")).toEqual([
      ...["site/content/app.json is there already", "site/package.json is there already"],
      ...["Nothing was written. Name another folder: precast init <folder>", ""],
    ]);
    expect(readdirSync(join(own.folder, "site")).sort()).toEqual(["content", "package.json"]);
    expect(readFileSync(join(own.folder, "site/package.json"), "utf8")).toBe("mine");
    expect((await own.call("init other --template blgo")).stderr).toMatch(/^--template must be one of blog, shop, /);
    await own.close();
  });
});

describe.skipIf(NO_TERMINAL !== null)(unlessLacking(NO_TERMINAL, "on a terminal"), () => {
  const onTerminal = (line: string) => startOnTerminal(`${process.execPath} ${main} ${line}`, work);

  test("asks for the folder and the template", async () => {
    const asked = onTerminal("init");
    await asked.printed(/Folder of the project/);
    asked.type("asked\r");
    await asked.printed(/Content to begin with/);
    asked.type("\x1b[B\r");
    expect([await asked.ended, asked.output()]).toEqual([0, expect.stringContaining("from the template shop.")]);
    expect(existsSync(join(work, "asked/content/content_types/products.json"))).toBe(true);
  });

  test("writes nothing when the question is cancelled, and asks only for what the command line leaves out", async () => {
    const asked = onTerminal("init never");
    await asked.printed(/Content to begin with/);
    asked.type("\x03");
    expect([await asked.ended, asked.output()]).toEqual([1, expect.stringContaining("Nothing was written.")]);
    expect(asked.output()).not.toContain("Folder of the project");
    expect(existsSync(join(work, "never"))).toBe(false);
  });
});

test("after `npx precast init` without an installation, npm installs it; when that fails, the command says so", async () => {
  const outside = join(place.folder, "outside");
  mkdirSync(outside);
  writeFileSync(join(place.folder, "_npx/0/package.json"), JSON.stringify({ dependencies: { precast: "^0.1.0" } }));
  const made = start(process.execPath, [main, "init", "site"], outside);
  expect([await made.ended, made.output()]).toEqual([
    1,
    expect.stringMatching(
      /\nAll files were written, but `npm install` failed \(npm .*\)\. Run it in site, then npm start\.\n$/,
    ),
  ]);
  expect(existsSync(join(outside, "site/package.json"))).toBe(true);
});
