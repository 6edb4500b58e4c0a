/** Settings from `precast.config.json` and `.env`: what counts more than what, what is refused, and `precast config`. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { nameKey, SETTINGS, type SettingName } from "../../shared/config.ts";
import { openPlace, type Place } from "../support/cli.ts";

let place: Place;
const FILES = [".env", ...["json", "mjs", "ts", "js"].map((ending) => `precast.config.${ending}`)];
beforeAll(() => {
  place = openPlace();
});
afterEach(() => {
  for (const name of FILES) rmSync(join(place.folder, name), { recursive: true, force: true });
});
afterAll(() => place.close());

function write(name: string, text: string | Readonly<Record<string, unknown>>): void {
  writeFileSync(join(place.folder, name), typeof text === "string" ? text : JSON.stringify(text));
}

type Listed = {
  readonly file: string | null;
  readonly dotenv: readonly string[];
  readonly settings: readonly { name: string; value: unknown; from: string; place: string | null }[];
};

async function list(line = "config", env: Readonly<Record<string, string>> = {}) {
  const listed = await place.json<Listed>(line, env);
  return { ...listed, of: (name: string) => listed.settings.find((setting) => setting.name === name) };
}

test("a flag counts more than the environment, that more than .env, and that more than the file", async () => {
  const told = async (args: string, env: Readonly<Record<string, string>>) => {
    const [, folder] = /no database in (\S+):/.exec((await place.call(`status ${args}`, env)).stderr) ?? [];
    const { from, place: where } = (await list(`config ${args}`, env)).of("dataDir") ?? {};
    return [folder, from, where];
  };
  expect(await told("", {})).toEqual([".precast", "default", null]);
  write("precast.config.json", { dataDir: "of-file" });
  expect(await told("", {})).toEqual(["of-file", "file", "precast.config.json"]);
  write(".env", "PRECAST_DATA_DIR=of-dotenv # a comment\n");
  expect(await told("", {})).toEqual(["of-dotenv", ".env", "PRECAST_DATA_DIR"]);
  const env = { PRECAST_DATA_DIR: "of-environment" };
  expect(await told("", env)).toEqual(["of-environment", "environment", "PRECAST_DATA_DIR"]);
  expect(await told("--data-dir of-flag", env)).toEqual(["of-flag", "flag", "--data-dir"]);
});

test("a folder of the embedded database in the file counts as named where CI is set", async () => {
  write("precast.config.json", { dataDir: "of-file" });
  const { stderr } = await place.call("status", { CI: "true" });
  expect(stderr).toMatch(/^There is no database in of-file:/);
});

test("every key stands for one variable: settings that share a flag have keys of their own, unless they are one", () => {
  const names = Object.keys(SETTINGS) as SettingName[];
  const pairs = new Set(names.map((name) => `${nameKey(name)} ${SETTINGS[name].env[0]}`));
  const [keys, variables] = [0, 1].map((part) => new Set([...pairs].map((pair) => pair.split(" ")[part])));
  expect([keys?.size, variables?.size]).toEqual([pairs.size, pairs.size]);
  const some = [
    "apps",
    "app",
    "oneApp",
    "port",
    "studioPort",
    "typesFile",
    "openapiFile",
    "plan",
    "monthlyPlan",
    "region",
  ];
  expect(some.map((name) => nameKey(name as SettingName)).join(" ")).toBe(
    "app app app port studioPort typesFile openapiFile plan monthlyPlan region",
  );
});

test("each value of a file reaches the command that has the setting, and no other one minds it", async () => {
  write("precast.config.json", {
    ...{ $schema: "https://example.com/any.json", port: 3922, adminPort: 3922, watch: true, app: ["a", "b"] },
    ...{ typesFile: "src/types.ts", mediaBaseUrl: null, purge: "no-cdn" },
  });
  expect((await place.call("serve")).stderr).toBe("--admin-port must be another port than --port, which is 3922\n");
  expect((await place.call("status")).stderr).toMatch(/^There is no database in/);
  expect((await place.call("deploy file:///nowhere")).stderr).toMatch(
    /^precast\.config\.json: "purge" must be cloudflare/,
  );
  expect((await place.call("openapi --check --app a")).stderr).toBe("--check has no effect without --write\n");
  expect((await place.call("types --check")).stderr).toBe('precast.config.json: "app" must be one value\n');
});

describe("a file that cannot be right is refused by every command that reads settings", () => {
  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    ["an unknown key", { outt: "tree" }, '"outt" is no setting: did you mean "out"?'],
    ["a flag as key", { "database-url": "x" }, '"database-url" is no setting: did you mean "databaseUrl"?'],
    ["a variable as key", { PRECAST_MEDIA_BASE_URL: "x" }, '… is no setting: did you mean "mediaBaseUrl"?'],
    ["a key like none", { colour: 1 }, '"colour" is no setting: write flags in camel case, as databaseUrl for …'],
    ["a key that every object has", { constructor: 1 }, '"constructor" is no setting: …'],
    [
      "a secret",
      { fastlyToken: "x" },
      '"fastlyToken" is a secret and … set FASTLY_API_TOKEN in .env or the environment',
    ],
    ["a number in quotes", { port: "3000" }, '"port" must be a number, without quotes'],
    ["a number that is none", { port: 70000 }, '"port" must be a whole number from 0 to 65535'],
    ["a flag in quotes", { watch: "true" }, '"watch" must be true or false, without quotes'],
    ["another value for a flag", { watch: "yes" }, '"watch" must be true or false'],
    ["a number for a name", { out: 5 }, '"out" must be text in quotes'],
    ["an object", { out: {} }, '"out" must be one value'],
    ["a list for one value", { host: ["::1"] }, '"host" must be one value'],
    ["a number in a list", { trustedProxy: [10] }, '"trustedProxy" must be an IP address or a range of them, …'],
  ])("%s", async (_, values, problem) => {
    write("precast.config.json", values);
    const { code, stdout, stderr } = await place.call("serve");
    expect([code, stdout]).toEqual([1, ""]);
    const [start = "", end = ""] = problem.split("…");
    expect(stderr).toMatch(/^precast\.config\.json: [^\n]+\n$/);
    expect(stderr).toContain(start);
    expect(stderr).toContain(end);
  });

  test.each([
    ['{\n "out": "a",\n x\n}', /^precast\.config\.json, line 3: is not valid JSON: [^\n]+\n$/],
    ['{\n "out": "a",\n "out": "b"\n}', /^precast\.config\.json, line 3: has the key "out" again\n$/],
    ["[]", /^precast\.config\.json must be an object of settings\.\n$/],
    ["", /^precast\.config\.json, line 1: is not valid JSON/],
  ])("%j", async (text, told) => {
    write("precast.config.json", text);
    expect(await place.call("status")).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(told) });
  });

  test("two files at once", async () => {
    write("precast.config.json", {});
    write("precast.config.mjs", "");
    const { code, stderr } = await place.call("status");
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^There are precast\.config\.json and precast\.config\.mjs:/),
    ]);
  });

  test("but not by the help", async () => {
    write("precast.config.json", "{");
    expect(await place.call("status --help")).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("a file with code", () => {
  test("exports its settings as default, and its error is told", async () => {
    write("precast.config.mjs", "export default { out: ['tr', 'ee'].join('') };");
    const { stdout, stderr } = await place.run("config");
    expect([stdout, stderr]).toEqual([expect.stringContaining("out\ttree\tprecast.config.mjs\n"), ""]);
    write("precast.config.mjs", "export const out = 'tree';");
    expect((await place.run("config")).stderr).toBe(
      "precast.config.mjs must export as default an object of settings.\n",
    );
    write("precast.config.mjs", "export default { out: nope };");
    expect((await place.run("status")).stderr).toBe("precast.config.mjs cannot be read: nope is not defined\n");
  });

  test("may be TypeScript where Node.js runs that, and is refused with what would be right elsewhere", async () => {
    write("precast.config.ts", 'const out: string = "tree";\nexport default { out };');
    const { code, stdout, stderr } = await place.run("config");
    if ((process.features as { readonly typescript?: unknown }).typescript)
      expect([code, stdout]).toEqual([0, expect.stringContaining("out\ttree\tprecast.config.ts\n")]);
    else expect([code, stderr]).toEqual([1, expect.stringMatching(/from version 22\.18 on.*precast\.config\.mjs or/)]);
  });
});

describe(".env", () => {
  test("gives variables that the environment lacks, and --debug names them, never their values", async () => {
    write(".env", 'PRECAST_OUT="my tree"\nPRECAST_DATA_DIR=unused\nPGPASSWORD=hush-hush\n');
    const { stdout, stderr } = await place.run("config --debug", { PRECAST_DATA_DIR: "data" });
    expect(stderr).toBe("Variables are read from .env: PGPASSWORD, PRECAST_OUT.\n");
    expect(stdout).toContain("out\tmy tree\t.env (PRECAST_OUT)\n");
    expect(stdout).toContain("dataDir\tdata\tPRECAST_DATA_DIR\n");
    expect(stdout).not.toContain("hush");
  });

  test("is named beside the file, and what is wrong in it is told with the variable", async () => {
    write(".env", "PRECAST_OUT=tree\n");
    write("precast.config.json", { port: 1 });
    const { stderr } = await place.call("status --debug");
    const told = "Settings are read from precast.config.json: port.\nVariables are read from .env: PRECAST_OUT.\n";
    expect((await place.call("config --debug")).stderr).toBe(told);
    expect(stderr).toContain("There is no database in .precast");
    write(".env", "PRECAST_JSON=maybe\n");
    expect((await place.call("status")).stderr).toBe("PRECAST_JSON must be true or false\n");
  });

  test("may be a folder, as of another tool", async () => {
    mkdirSync(join(place.folder, ".env"));
    expect((await list()).dotenv).toEqual([]);
  });
});

test("secrets are not shown, nor passwords in addresses", async () => {
  write(".env", "AWS_SECRET_ACCESS_KEY=hush-hush\n");
  write("precast.config.json", { databaseUrl: "postgres://cms:hush-hush@host/db?sslpassword=hush-hush&a=b" });
  const replicas = "postgres://cms:hush-hush@one/db postgres://two/db?password=hush-hush";
  const { of } = await list("config", { PRECAST_READ_DATABASE_URL: replicas });
  expect(of("databaseUrl")?.value).toBe("postgres://cms:…@host/db?sslpassword=…&a=b");
  expect(of("readDatabaseUrl")?.value).toEqual(["postgres://cms:…@one/db", "postgres://two/db?password=…"]);
  expect(of("secretAccessKey")).toEqual({
    ...{ name: "secretAccessKey", value: "…" },
    ...{ from: ".env", place: "AWS_SECRET_ACCESS_KEY" },
  });
  expect(of("cloudflareToken")).toMatchObject({ value: null, from: "default" });
  expect((await place.call("config", { PRECAST_READ_DATABASE_URL: replicas })).stdout).not.toContain("hush");
});
