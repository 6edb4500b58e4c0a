/**
 * What `npm start` does, on the embedded database: import, build and serve the demo, with requests to try. It is done
 * with the package as it is published.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CommandResult, openPlace, type Place, type RunningServer } from "../support/cli.ts";
import { unpackPackage } from "../support/package.ts";
import type { ReceivedAnswer } from "../support/site.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../package.json", import.meta.url));
const ROOT = dirname(PACKAGE);

type Entry = { readonly id: string; readonly status: string };

let packed: Place;
let place: Place;
let server: RunningServer;
let ran: CommandResult[];

beforeAll(async () => {
  packed = openPlace();
  const folder = await unpackPackage(packed);
  place = openPlace(
    { PRECAST_DATA_DIR: "data", PRECAST_OUT: "tree", PRECAST_PORT: "0" },
    join(folder, "dist/cli/main.js"),
  );
  ran = [];
  for (const line of ["migrate --quiet", `import ${join(folder, "cli/demo")}`, "build"])
    ran.push(await place.run(line));
  server = await place.serve("--watch");
  await server.printed(/(.*curl.*\n){3}/);
});
afterAll(async () => {
  await place.close();
  await packed.close();
});

/** Runs a command of the package with `--json`. */
async function json<T>(line: string): Promise<T> {
  const { code, stdout, stderr } = await place.run(`${line} --json`);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as T;
}

/** The curl lines that the server printed, with the responses to their requests. */
async function tried(): Promise<{ readonly line: string; readonly got: ReceivedAnswer }[]> {
  const lines = server
    .output()
    .stdout.split("\n")
    .filter((line) => line.includes("curl"));
  return Promise.all(
    lines.map(async (line) => {
      const [, appKey = "", url = ""] = /^\s*curl -H 'X-App-Key: ([^']+)' '([^']+)'$/.exec(line) ?? [];
      expect(url.startsWith(`${server.url}/`)).toBe(true);
      return { line, got: await server.get(url.slice(server.url.length), { appKey }) };
    }),
  );
}

function readEntries(slug: string): Entry[] {
  const text = readFileSync(join(DEMO, "entries", `${slug}.ndjson`), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry);
}

describe("the demo", () => {
  test("is started by npm start with migrate, import, build and serve", () => {
    const { scripts } = JSON.parse(readFileSync(PACKAGE, "utf8")) as { scripts: Record<string, string> };
    const [first, ...started] = scripts.start?.split(" && ") ?? [];
    expect(first).toMatch(/^node -e "console\.log\('[^']*demo[^']*'\)"$/);
    const commands = started.map((command) => command.replace(/^node \S+ | --data-dir .precast$/g, ""));
    // Media of bundles that are imported beside the demo.
    const media = "--media-base-url http://localhost:3001";
    const serve = `serve --watch --media-port 3001 ${media}`;
    expect(commands).toEqual(["migrate --quiet", "import cli/demo", `build ${media}`, serve]);
  });

  test("is set up without an error, and writes only into the data folder and the tree", () => {
    for (const { code, stderr } of ran) expect([code, stderr]).toEqual([0, ""]);
    expect(ran[0]?.stdout).toBe("");
    expect(readdirSync(place.folder).sort()).toEqual(["data", "tree"]);
  });

  test("prints three different requests to try, and each gets a 200 with data", async () => {
    const requests = await tried();
    expect(requests).toHaveLength(3);
    for (const { line, got } of requests) {
      expect([line, got.status]).toEqual([line, 200]);
      expect([line, got.json.data.length > 0]).toEqual([line, true]);
    }
    expect(new Set(requests.map(({ line }) => line)).size).toBe(3);
  });

  test("prints a free request and a counted one", async () => {
    const counted = (await tried()).map(({ got }) => got.headers["x-request-counted"]);
    expect(new Set(counted)).toEqual(new Set(["true", "false"]));
  });

  test("contains drafts, and shows none of them in entries or lists", async () => {
    const slugs = readdirSync(join(DEMO, "entries")).map((name) => name.replace(".ndjson", ""));
    const drafts = slugs.flatMap((slug) =>
      readEntries(slug)
        .filter(({ status }) => status === "draft")
        .map(({ id }) => ({ slug, id })),
    );
    expect(drafts.length).toBeGreaterThan(0);
    for (const { slug, id } of drafts) {
      expect((await server.get(`/api/v1/${slug}/${id}`, { appKey: "atlas" })).status).toBe(404);
      expect((await server.get(`/api/v1/${slug}/${id}?populate=x`, { appKey: "atlas" })).status).toBe(404);
    }
    for (const slug of slugs) {
      const published = readEntries(slug).filter(({ status }) => status === "published").length;
      const { json } = await server.get(`/api/v1/${slug}?fields=id&per_page=100`, { appKey: "atlas" });
      expect([slug, json.meta.total]).toEqual([slug, published]);
      expect(json.data.filter(({ id }: Entry) => drafts.some((draft) => draft.id === id))).toEqual([]);
    }
  });

  test("has more than 200 entries in at least two content types, one of them cities", async () => {
    const { json } = await server.get("/api/v1/_schemas", { appKey: "atlas" });
    const counts = json.data.map(({ entry_count }: { entry_count: number }) => entry_count);
    expect(counts.length).toBeGreaterThanOrEqual(2);
    expect(counts.reduce((sum: number, count: number) => sum + count, 0)).toBeGreaterThan(200);
    const fields = json.data.flatMap(({ slug }: { slug: string }) => slug);
    expect(fields).toContain("cities");
  });
});

describe("verify", () => {
  type Report = { readonly apps: { key: string; files: number; computed: number; differences: unknown[] }[] };

  test("finds no difference in a sample while the server runs", async () => {
    const { apps } = await json<Report>("verify --sample 100");
    expect(apps).toMatchObject([{ key: "atlas", differences: [] }]);
    expect(apps[0]?.files).toBeGreaterThan(1000);
  });

  test("finds no difference in any file after the server has ended", async () => {
    expect((await server.stop()).code).toBe(0);
    const { apps } = await json<Report>("verify");
    expect(apps).toMatchObject([{ key: "atlas", computed: apps[0]?.files, differences: [] }]);
  });
});

describe("the package", () => {
  test("prints every configuration for edges, with the scripts that they contain", async () => {
    const { targets } = await json<{ targets: { name: string }[] }>("edge");
    expect(targets.length).toBeGreaterThan(5);
    for (const { name } of targets) {
      const origin = name === "fastly" ? "" : "--origin http://api.example.org";
      const treeUrl = ["varnish", "fastly"].includes(name) ? "--tree-url http://tree.example.org" : "";
      const { code, stderr } = await place.run(`edge ${name} ${origin} ${treeUrl}`);
      expect([name, code, stderr]).toEqual([name, 0, ""]);
    }
  });

  test("needs nothing that refuses Node.js 20.19 or a later one: yarn 1 installs no package outside of its engines", () => {
    const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
      packages: Record<string, Locked>;
    };
    const installed = Object.entries(lock.packages).filter(([, { dev, devOptional }]) => !(dev ?? devOptional));
    expect(installed.length).toBeGreaterThan(10);
    const refusing = installed.filter(([, { engines }]) => !acceptsFrom(engines?.node ?? ">=0", [20, 19, 0]));
    expect(refusing).toEqual([]);
  });

  test("is what apps import the client from, with its types, and for development another one", async () => {
    const app = join(packed.folder, "app");
    mkdirSync(join(app, "node_modules"), { recursive: true });
    symlinkSync(join(packed.folder, "package"), join(app, "node_modules/precast"));
    const code = `import { createClient, type AnyType, type Price } from "precast/client";
const api = createClient<{ a: AnyType }>({ url: "http://127.0.0.1:1", appKey: "a" });
const { counted, rule }: Price = await api.price({ type: "a", page: 2 });
console.log(counted, rule, import.meta.resolve("precast/client").replace(/.*\\//, ""));
`;
    writeFileSync(join(app, "app.mts"), code);
    const tsc = [
      join(ROOT, "node_modules/typescript/bin/tsc"),
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2023",
    ];
    const compiled = await packed.spawn(process.execPath, [
      ...tsc,
      "--types",
      "node",
      "--typeRoots",
      join(ROOT, "node_modules/@types"),
      "app/app.mts",
    ]);
    expect([compiled.code, compiled.stdout]).toEqual([0, ""]);
    const run = (...how: string[]) => packed.spawn(process.execPath, [...how, "app/app.mjs"]);
    const said = "false A list without parameters, or with page alone, is free.";
    expect(await run()).toMatchObject({ code: 0, stdout: `${said} client.js\n` });
    expect(await run("--conditions", "development")).toMatchObject({ code: 0, stdout: `${said} development.js\n` });
  });

  test("contains no tests and no sources", () => {
    expect(readdirSync(join(packed.folder, "package")).sort()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "cli",
      "dist",
      "node_modules",
      "package.json",
      "server",
      "shared",
      "test",
    ]);
    const files = readdirSync(join(packed.folder, "package"), { recursive: true, encoding: "utf8" });
    const sources = files.filter(
      (file) => !file.startsWith("node_modules") && /\.ts$/.test(file) && !/\.d\.ts$/.test(file),
    );
    expect(sources).toEqual([]);
  });
});

type Locked = {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly engines?: { readonly node?: string };
};

/** Whether a range is `>=` a version that is not above this one. Another kind of range is for a person to look at. */
function acceptsFrom(range: string, version: readonly number[]): boolean {
  const [, least] = /^>= ?(\d+(?:\.(?:\d+|x))*)$/.exec(range) ?? [];
  if (least === undefined) return false;
  const parts = least.replaceAll("x", "0").split(".").map(Number);
  const different = version.findIndex((part, index) => part !== (parts[index] ?? 0));
  return different < 0 || (version[different] as number) > (parts[different] ?? 0);
}
