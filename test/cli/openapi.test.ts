/** `precast openapi`: other tools accept the document, and the server keeps what it says. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { dereference, validate } from "@apidevtools/swagger-parser";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeApi } from "../../cli/openapi/document.ts";
import { runConcurrently } from "../../shared/async.ts";
import { idOf, openPlace, type Place, type RunningServer, SHOP, shop, UNREACHABLE_URL } from "../support/cli.ts";
import { REAL_BUNDLES, writeBundle } from "../support/content.ts";
import { openStore, type ReceivedAnswer, type Store } from "../support/site.ts";
import { fieldOf, typeOf } from "../support/types.ts";

const REAL_KEYS = REAL_BUNDLES.map(
  (folder) => JSON.parse(readFileSync(join(folder, "app.json"), "utf8")).key as string,
);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

let store: Store;
let place: Place;
let server: RunningServer;
/** A server without a tree. */
let live: RunningServer;
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "", PRECAST_MEDIA_BASE_URL: "https://media.test" });
  await place.import(shop());
  for (const folder of [join(ROOT, "cli/demo"), ...REAL_BUNDLES])
    expect((await place.call(["import", folder])).code).toBe(0);
  expect((await place.call("build")).code).toBe(0);
  server = await place.serve();
  live = await place.serve("--out nothing --data-dir other");
});
afterAll(async () => {
  agent.destroy();
  await place.close();
  await store.close();
});

// biome-ignore lint/suspicious/noExplicitAny: a document as other tools read it
type Json = any;

async function openapi(line: string): Promise<string> {
  const { code, stdout, stderr } = await place.call(`openapi ${line}`);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

type ExampleRequest = {
  readonly target: string;
  readonly path: string;
  readonly operation: Json;
  readonly counted: boolean;
};

/** Every request that the examples of parameters make: an operation with what it needs, and with each other parameter. */
function exampleRequests(document: Json): ExampleRequest[] {
  return Object.entries<Json>(document.paths).flatMap(([path, { get: operation }]) => {
    const { parameters } = operation;
    const inPath = parameters.filter((one: Json) => one.in === "path");
    if (inPath.some((one: Json) => one.example === undefined)) return [];
    const base = inPath.reduce((text: string, one: Json) => text.replace(`{${one.name}}`, one.example), path);
    const inQuery = parameters.filter((one: Json) => one.in === "query" && one.example !== undefined);
    const required = inQuery.filter((one: Json) => one.required);
    const write = (some: Json[]) =>
      some.map((one) => `${encodeURIComponent(one.name)}=${[one.example].flat().map(encodeURIComponent).join()}`);
    const requestOf = (some: Json[], counted: boolean) => {
      const query = write([...required, ...some]).join("&");
      return { target: `/api/v1${base}${query === "" ? "" : `?${query}`}`, path, operation, counted };
    };
    const optional = inQuery.filter((one: Json) => !one.required);
    return [
      requestOf([], operation["x-precast-counted"]),
      ...optional.map((one: Json) => requestOf([one], one["x-precast-counted"])),
      ...(optional.length > 1
        ? [
            requestOf(
              optional.filter((one: Json) => !one.name.startsWith("filter")),
              true,
            ),
          ]
        : []),
    ];
  });
}

/** What a document without references has against an answer: nothing, when it has its status, headers and body. */
function openDocument(document: Json) {
  const ajv = addFormats.default(new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true }));
  return (path: string, { status, headers, text, json }: ReceivedAnswer): unknown[] => {
    const response = document.paths[path].get.responses[status];
    if (response === undefined) return [`${status} is not documented`];
    const wrong = Object.entries<Json>(response.headers).flatMap(([name, { required, schema }]) => {
      const value = headers[name.toLowerCase()];
      if (value === undefined) return required ? [`${name} is missing`] : [];
      return ajv.validate(schema, schema.type === "string" ? value : JSON.parse(value)) ? [] : [`${name} is ${value}`];
    });
    const known = [...Object.keys(response.headers), ...OF_HTTP].map((name) => name.toLowerCase());
    const unknown = Object.keys(headers).filter((name) => !known.includes(name));
    const schema = response.content?.["application/json"].schema;
    if (schema === undefined) return [...wrong, ...unknown, ...(text === "" ? [] : ["it has a body"])];
    return [...wrong, ...unknown, ...(ajv.validate(schema, json) ? [] : (ajv.errors ?? []))];
  };
}

/** Headers that OpenAPI leaves to HTTP, and those of CORS, which only browsers read. */
const OF_HTTP = [
  ...["Content-Type", "Content-Length", "Content-Encoding", "Date", "Connection", "Keep-Alive", "Transfer-Encoding"],
  ...["Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Timing-Allow-Origin"],
];

describe.each([SHOP, "atlas", ...REAL_KEYS])("of %s", (key) => {
  let text: string;
  let document: Json;
  let problems: ReturnType<typeof openDocument>;
  beforeAll(async () => {
    text = await openapi(`--app ${key}`);
    document = await dereference(JSON.parse(text));
    problems = openDocument(document);
  });

  test("is a valid document", async () => {
    expect(document.openapi).toBe("3.1.0");
    await expect(validate(JSON.parse(text))).resolves.toBeDefined();
    const wrong = JSON.parse(text);
    wrong.components.parameters.wrong = { name: "x", in: "nowhere" };
    await expect(validate(wrong)).rejects.toThrow();
  });

  test("openapi-typescript makes types of it that compile strictly", () => {
    const folder = join(place.folder, `api-${key}`);
    mkdirSync(folder);
    writeFileSync(join(folder, "api.json"), text);
    makeTypes(folder);
    writeFileSync(
      join(folder, "check.ts"),
      key === SHOP ? SHOP_TYPES : `import type { paths } from "./api.ts";\nexport type { paths };\n`,
    );
    const options = [
      "--noEmit",
      "--strict",
      "--target",
      "es2022",
      "--module",
      "preserve",
      "--allowImportingTsExtensions",
    ];
    execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...options, "check.ts"], {
      cwd: folder,
      encoding: "utf8",
      stdio: "pipe",
    });
  });

  test("the server gives every example request the documented status, price, headers and body", async () => {
    const requests = exampleRequests(document);
    expect(requests.length).toBeGreaterThan(60);
    const prices = new Set(requests.map(({ counted }) => counted));
    expect(prices).toEqual(new Set([true, false]));
    const prove = async (running: RunningServer, { target, path, counted }: ExampleRequest) => {
      const answer = await running.get(target, { appKey: key, agent });
      const price = answer.headers["x-request-counted"];
      expect([target, answer.status, price, problems(path, answer)]).toEqual([target, 200, String(counted), []]);
    };
    await runConcurrently(requests, 8, (request) => prove(server, request));
    await runConcurrently(
      requests.filter((_, index) => index % 5 === 0),
      8,
      (request) => prove(live, request),
    );
    for (const { target, path, operation } of requests.filter(({ target }) => !target.includes("?"))) {
      const { headers, json } = await server.get(target, { appKey: key });
      const { example } = operation.responses[200].content["application/json"];
      if (path.endsWith("}")) expect(json).toEqual(example);
      const again = await server.get(target, { appKey: key, headers: { "If-None-Match": headers.etag as string } });
      expect([target, again.status, problems(path, again)]).toEqual([target, 304, []]);
    }
  });

  test("a filter with a real value finds entries", async () => {
    const filters = exampleRequests(document).filter(({ target }) => /^[^?]*\?filter%5B\w+%5D=/.test(target));
    expect(filters.length).toBeGreaterThan(5);
    for (const { target } of filters) {
      const { json } = await server.get(target, { appKey: key });
      expect([target, json.data.length > 0]).toEqual([target, true]);
    }
  });

  test("an error has the documented status, code and headers", async () => {
    const [slug] = document.paths["/_schemas/{contentType}"].get.parameters[0].schema.enum;
    const names = (count: number) => "x".repeat(count);
    const cases: readonly (readonly [path: string, target: string, status: number, appKey?: string | null])[] = [
      ["/_schemas", "/_schemas", 401, null],
      [`/${slug}`, `/${slug}`, 401, "nobody"],
      [`/${slug}`, `/${slug}?filter[nothing]=x`, 400],
      [`/${slug}`, `/${slug}?filter[x=y`, 400],
      [`/${slug}`, `/${slug}?sort=nothing`, 400],
      [`/${slug}`, `/${slug}?page=0`, 400],
      [`/${slug}`, `/${slug}?per_page=101`, 400],
      [`/${slug}`, `/${slug}?fields=${names(501)}`, 400],
      [`/${slug}/search`, `/${slug}/search`, 400],
      [`/${slug}/{id}`, `/${slug}/nothing`, 404],
      ["/_schemas/{contentType}", "/_schemas/nothing", 404],
    ];
    for (const [path, target, status, appKey = key] of cases) {
      const answer = await server.get(`/api/v1${target}`, appKey === null ? {} : { appKey });
      expect([target, answer.status, problems(path, answer)]).toEqual([target, status, []]);
    }
  });

  test("without a database, a counted request has the documented answer, and a free one as well", async () => {
    const alone = await place.serve("--data-dir alone", { DATABASE_URL: UNREACHABLE_URL });
    const [slug] = document.paths["/_schemas/{contentType}"].get.parameters[0].schema.enum;
    for (const [target, status] of [
      [`/api/v1/${slug}`, 200],
      [`/api/v1/${slug}?per_page=1`, 503],
    ] as const) {
      const answer = await alone.get(target, { appKey: key });
      expect([target, answer.status, problems(`/${slug}`, answer)]).toEqual([target, status, []]);
    }
    await alone.stop();
  });

  test("is the same for the same content, from the database and from the tree", async () => {
    expect(await openapi(`--app ${key}`)).toBe(text);
    expect(await openapi(`out --app ${key}`)).toBe(text);
  });
});

/** With TypeScript 5, which openapi-typescript needs: it asks for `typescript`, and the project has a newer one. */
function makeTypes(folder: string): void {
  const hook = `export const resolve = (name, context, next) => next(name === "typescript" ? "typescript-5" : name, context);`;
  const register = `import { register } from "node:module"; register("data:text/javascript,${encodeURIComponent(hook)}");`;
  const loader = `--import=data:text/javascript,${encodeURIComponent(register)}`;
  const program = join(ROOT, "node_modules/openapi-typescript/bin/cli.js");
  execFileSync(process.execPath, [loader, program, "api.json", "--output", "api.ts"], { cwd: folder, stdio: "pipe" });
}

const SHOP_TYPES = `import type { components, paths } from "./api.ts";
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Query = NonNullable<paths["/posts"]["get"]["parameters"]["query"]>;
type Found = paths["/posts/{id}"]["get"]["responses"][200];
type Schemas = components["schemas"];
const checks: [
  Equal<Query["filter[price]"], number | undefined>, Equal<Query["filter[active]"], boolean | undefined>,
  Equal<Query["filter[tags][in]"], string[] | undefined>, Equal<Query["filter[price][gte]"], number | undefined>,
  Equal<Extract<keyof Query, \`filter[active]\${string}\`>, "filter[active]" | "filter[active][neq]" | "filter[active][contains]" |
    "filter[active][starts_with]" | "filter[active][in]" | "filter[active][nin]">,
  Equal<Extract<Query["sort"], \`\${string}price\`>, "price" | "-price">,
  Equal<paths["/posts/search"]["get"]["parameters"]["query"]["q"], string>,
  Equal<Found["headers"]["ETag"], string>, Equal<Found["headers"]["X-Request-Counted"], boolean>,
  Equal<Schemas["PostsEntry"]["title"], string>, Equal<Schemas["PostsEntry"]["price"], number | null>,
  Equal<Schemas["PostsPart"]["title"], string | undefined>, Equal<Schemas["PostsPart"]["id"], string>,
] = [true, true, true, true, true, true, true, true, true, true, true, true, true];
export default checks;
`;

test("a bundle has the same document, without examples", async () => {
  const bundle = join(place.folder, "bundle");
  mkdirSync(bundle);
  await writeBundle(bundle, shop());
  const { code, stdout, stderr } = await place.call(`openapi ${bundle}`, { DATABASE_URL: "", CI: "1" });
  expect([code, stderr]).toEqual([0, ""]);
  const withoutExamples = (text: string) => JSON.parse(text, (key, value) => (key === "example" ? undefined : value));
  const wanted = withoutExamples(await openapi(`--app ${SHOP}`));
  expect(withoutExamples(stdout)).toEqual(wanted);
  expect(stdout).not.toContain(idOf(1));
});

test("--check exits with 2 when the file is not what would be written, as after a change of the content", async () => {
  const line = `openapi --app ${SHOP} --write shop.json`;
  const file = join(place.folder, "shop.json");
  expect((await place.call(`${line} --check`)).code).toBe(2);
  expect(await place.call(line)).toMatchObject({ code: 0, stdout: "Wrote shop.json.\n" });
  expect(await place.call(`${line} --check`)).toMatchObject({ code: 0, stdout: "shop.json is current.\n" });
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace('"title": "One"', '"title": "Old"'));
  const { code, stdout } = await place.call(`${line} --check`);
  expect([code, stdout]).toEqual([
    2,
    "shop.json is out of date. Run `precast openapi` without --check, and commit shop.json.\n",
  ]);
  expect(readFileSync(file, "utf8")).not.toBe(text);
  expect(await place.json(line)).toEqual({ app: SHOP, file: "shop.json", written: true });
  expect((await place.call(`openapi --app ${SHOP} --check`)).stderr).toBe("--check has no effect without --write\n");
});

test.each([
  ["an app that is not there", "openapi --app nope", /No app has the key nope\. .*: (.*, )?Shop, atlas(, .*)?\.$/],
  [
    "no app where there are several",
    "openapi",
    /^--app is missing, and there are several apps: (.*, )?Shop, atlas(, .*)?$/,
  ],
  ["a folder that is neither", "openapi /", /^\/ is neither a bundle .* nor a tree /],
])("%s is an error that says what would be right", async (_, line, message) => {
  const { code, stdout, stderr } = await place.call(line);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr.trimEnd()).toMatch(message);
});

test("labels and descriptions are text in Markdown as well", async () => {
  const label = "<img src=x> [a](javascript:b) *c*\nd";
  const type = typeOf("a", [fieldOf("x", "text", { label })], { description: label, filterable_fields: ["x"] });
  const app = { key: "k", name: "", media_base_url: "", types: [type] };
  const document: Json = describeApi(app, new Map());
  const escaped = "\\<img src=x\\> \\[a\\](javascript:b) \\*c\\* d";
  expect(document.components.schemas.AEntry.properties.x.description).toBe(escaped);
  expect(document.tags[1].description).toBe(escaped);
  expect(document.paths["/a"].get.parameters[0].description).toBe(`${escaped} equals …`);
  await expect(validate(document)).resolves.toBeDefined();
});
