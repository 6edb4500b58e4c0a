/** The pipelines in cli/deploy/README.md: their YAML is parsed, and their commands are run as written, twice. */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type Cdn, startCdn } from "../support/cdn.ts";
import { type CommandResult, openPlace, type Place, type RunningServer, shop, shopWithout } from "../support/cli.ts";
import { differencesOf, filesOf } from "../support/deployed.ts";
import { type S3, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

type Env = Readonly<Record<string, string>>;
type Pipeline = { readonly env: Env; readonly commands: readonly string[] };
type GitHub = {
  readonly on: Readonly<Record<string, unknown>>;
  readonly jobs: { readonly deploy: { env: Env; steps: { run?: string; uses?: string; with?: unknown }[] } };
};
type GitLab = {
  readonly content: { variables: Env; before_script: string[]; script: string[]; rules: { if: string }[] };
};

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = join(ROOT, "dist/cli/main.js");
const README = readFileSync(join(ROOT, "cli/deploy/README.md"), "utf8");
const [GITHUB, GITLAB] = [...README.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => parse(text ?? "")) as [
  GitHub,
  GitLab,
];
const { steps, env } = GITHUB.jobs.deploy;
const PIPELINES: readonly [string, Pipeline][] = [
  ["GitHub Actions", { env, commands: steps.flatMap(({ run }) => (run === undefined ? [] : [run])) }],
  [
    "GitLab CI",
    { env: GITLAB.content.variables, commands: [...GITLAB.content.before_script, ...GITLAB.content.script] },
  ],
];
/** Variables that the README tells users to set on the CI host. All others are in the YAML. */
const SECRETS = [
  "DATABASE_URL",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "CLOUDFLARE_ZONE_ID",
  "CLOUDFLARE_API_TOKEN",
];

test("the pipelines start from a CMS or by hand, and run only npm ci and precast; the README lists secrets", () => {
  expect(Object.keys(GITHUB.on)).toEqual(["repository_dispatch", "workflow_dispatch"]);
  expect(GITLAB.content.rules.map((rule) => rule.if)).toEqual([
    '$CI_PIPELINE_SOURCE == "trigger"',
    '$CI_PIPELINE_SOURCE == "web"',
  ]);
  for (const step of steps) expect(Object.keys(step)).toContain(step.run === undefined ? "uses" : "run");
  for (const [, { commands }] of PIPELINES) {
    expect(commands.filter((command) => !command.startsWith("npx precast ")).map((one) => one.slice(0, 6))).toEqual([
      "npm ci",
    ]);
  }
  for (const name of SECRETS) expect([name, README.includes(`\`${name}\``)]).toEqual([name, true]);
});

describe.each(PIPELINES)("the pipeline for %s", (_, { env: told, commands }) => {
  let store: Store;
  let place: Place;
  let s3: S3;
  let cdn: Cdn;
  let server: RunningServer;

  beforeAll(async () => {
    store = await openStore("postgres");
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    s3 = await startS3({ region: told.AWS_REGION as string });
    cdn = await startCdn(() => ({ status: 200, body: '{"success":true}' }));
    await place.import(shop());
    server = await place.serve("--out none");
    provide("npx", `shift; exec '${process.execPath}' '${MAIN}' "$@"`);
    provide("npm", "exit 0");
  });
  afterAll(async () => {
    await place.close();
    await cdn.close();
    await s3.close();
    await store.close();
  });

  /** Puts a program of this name on the `PATH` of the commands. */
  function provide(name: string, text: string): void {
    const path = join(place.folder, "bin", name);
    mkdirSync(join(place.folder, "bin"), { recursive: true });
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  }

  /** Runs the commands with the variables of the YAML, test secrets, and stand-ins for S3, the CDN and the API. */
  async function runAll(): Promise<CommandResult[]> {
    const plain = Object.entries(told).filter(([, value]) => !value.startsWith("${{"));
    const hosts = { AWS_ENDPOINT_URL: s3.url, PRECAST_PURGE_ENDPOINT: cdn.url };
    const secrets = {
      ...s3.env,
      DATABASE_URL: store.url ?? "",
      CLOUDFLARE_ZONE_ID: "zone",
      CLOUDFLARE_API_TOKEN: "token",
    };
    const path = `${join(place.folder, "bin")}:${process.env.PATH}`;
    const all = { ...secrets, ...Object.fromEntries(plain), ...hosts, PATH: path };
    const ran: CommandResult[] = [];
    for (const command of commands) {
      ran.push(await place.spawn("sh", ["-c", command.replace("https://api.example.com", server.url)], all));
    }
    return ran;
  }

  const codes = (ran: readonly CommandResult[]) => ran.map(({ code, stderr }) => [code, stderr]);
  const well = commands.map(() => [0, ""]);

  test("deploys the tree, then from a fresh runner after an edit a part of it, and purges both times", async () => {
    expect(codes(await runAll())).toEqual(well);
    expect(differencesOf(filesOf(s3), join(place.folder, "out"))).toEqual([]);
    await place.import(shopWithout(1));
    rmSync(join(place.folder, "out"), { recursive: true });
    s3.requests.length = 0;
    expect(codes(await runAll())).toEqual(well);
    await place.build("whole");
    expect(differencesOf(filesOf(s3), join(place.folder, "whole"))).toEqual([]);
    const written = s3.requests.filter(({ method, key }) => method === "PUT" && !key.includes("/.precast/"));
    expect([written.length > 0, written.length < filesOf(s3).size]).toEqual([true, true]);
    expect(cdn.requests.map(({ target }) => target)).toEqual(["/zones/zone/purge_cache", "/zones/zone/purge_cache"]);
  });

  test("has a verify command that exits with 2 when a file differs from the live answer", async () => {
    await place.build();
    writeFileSync(join(place.folder, "out/x-53686f70/v1/_schemas.json"), "{}");
    const verify = commands.find((command) => command.includes(" verify ")) as string;
    const { code } = await place.spawn("sh", ["-c", verify], {
      PATH: `${join(place.folder, "bin")}:${process.env.PATH}`,
    });
    expect(code).toBe(2);
  });
});
