/**
 * The client in a browser, on a page from another origin than the server's; and the examples and README's code, which
 * run as they stand.
 */
import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { importBundle } from "../../cli/commands/import.ts";
import type * as Client from "../../dist/client/client.js";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { rowsOf } from "../support/replica-set.ts";
import { type ApiServer, buildSite, openApiServer, openStore, type Store } from "../support/site.ts";

type PageGlobals = { readonly client: typeof Client; readonly bringBack: () => Promise<void> };

/** A page that does nothing but load the client. */
const EMPTY_PAGE = `<script type="module">import * as client from "./client.js"; globalThis.client = client;</script>`;

/** A worker that tells its page how many cities there are. */
const WORKER = `import { createClient } from "./client.js";
onmessage = async ({ data: url }) => postMessage((await createClient({ url, appKey: "atlas" }).cities.list()).meta.total);`;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const EXAMPLES = join(ROOT, "shared/client/examples");
const JOURNEY = "334fd717-7e45-59e0-b78a-34d7538538cc";

let postgres: TestServer;
let store: Store;
let server: ApiServer;

beforeAll(async () => {
  postgres = await startPostgres();
  store = await openStore("postgres", {}, postgres.url("postgres"));
  await importBundle(store.database, join(ROOT, "cli/demo"), { prune: true, dryRun: false });
  await buildSite(store);
  server = await openApiServer(store);
});
afterAll(async () => {
  await server.close();
  await store.close();
  await postgres.remove();
});

/** Whether the database accepts connections: all that are open are closed. */
async function allowDatabase(allowed: boolean): Promise<void> {
  const name = new URL(store.url as string).pathname.slice(1);
  await rowsOf(postgres.url("postgres"), `ALTER DATABASE "${name}" ALLOW_CONNECTIONS ${allowed}`);
  await rowsOf(
    postgres.url("postgres"),
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`,
  );
}

function findChromium(): string | null {
  try {
    return execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
  } catch {
    return null;
  }
}
const CHROMIUM = findChromium();

describe.skipIf(CHROMIUM === null)(`in a browser${CHROMIUM === null ? " (skipped: there is no chromium)" : ""}`, () => {
  let site: Server;
  let origin: string;
  let browser: Browser;
  let page: Page;
  let problems: string[];

  beforeAll(async () => {
    const files: Record<string, readonly [string, string | Buffer]> = {
      "/": ["text/html", EMPTY_PAGE],
      "/worker.js": ["text/javascript", WORKER],
      "/cities.html": ["text/html", readFileSync(join(EXAMPLES, "cities.html"))],
      "/client.js": ["text/javascript", readFileSync(join(ROOT, "dist/client/client.js"))],
    };
    site = createServer((request, response) => {
      const [type, content] = files[request.url?.replace(/\?.*/, "") ?? ""] ?? ["text/plain", ""];
      response.writeHead(200, { "Content-Type": type }).end(content);
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    const address = site.address();
    // Another host as well as another port.
    origin = `http://localhost:${typeof address === "object" ? address?.port : ""}`;
    browser = await chromium.launch({ executablePath: CHROMIUM as string, args: ["--no-sandbox"] });
  });
  afterAll(async () => {
    await browser.close();
    site.close();
  });
  beforeEach(async () => {
    await page?.close();
    page = await browser.newPage();
    problems = [];
    page.on("pageerror", (error) => void problems.push(error.message));
  });

  test("it lists, searches and populates, and hides that answers have not changed", async () => {
    await page.goto(origin);
    const got = await page.evaluate(
      async ([url, journey]) => {
        const { createClient, ApiError } = (globalThis as unknown as PageGlobals).client;
        const sent: Client.Sent[] = [];
        const api = createClient<Record<"cities" | "journeys", Client.AnyType>>({
          url: url as string,
          appKey: "atlas",
          onRequest: (one) => void sent.push(one),
        });
        const first = await api.cities.list({ filter: { climate: "highland" }, page: 1 });
        const again = await api.cities.list({ filter: { climate: "highland" }, page: 1 });
        const found = await api.cities.search("lighthouse");
        const { stops } = await api.journeys.get(journey as string, { populate: ["stops"] });
        const error = await api.cities.list({ sort: "nope" }).catch((reason: unknown) => reason);
        return {
          isSame: JSON.stringify(first) === JSON.stringify(again),
          total: first.meta.total,
          found: found.data.map(({ name }) => name),
          stops: stops.map(({ name }: { name: string }) => name),
          error: error instanceof ApiError ? [error.status, error.code, error.parameter] : String(error),
          sent: sent.map((one) => [one.url.slice((url as string).length), one.status, one.counted]),
        };
      },
      [server.url, JOURNEY] as const,
    );
    expect(got).toEqual({
      isSame: true,
      total: expect.any(Number),
      found: expect.arrayContaining([expect.any(String)]),
      stops: expect.arrayContaining([expect.any(String)]),
      error: [400, "INVALID_SORT", "sort"],
      sent: [
        ["/api/v1/_schemas/cities", 200, false],
        ["/api/v1/cities?filter[climate]=highland", 200, false],
        ["/api/v1/cities?filter[climate]=highland", 304, false],
        ["/api/v1/cities/search?q=lighthouse", 200, true],
        ["/api/v1/_schemas/journeys", 200, false],
        [`/api/v1/journeys/${JOURNEY}?populate=stops`, 200, true],
        ["/api/v1/cities?sort=nope", 400, true],
      ],
    });
    expect(got.total).toBeGreaterThan(3);
    expect(problems).toEqual([]);
  });

  test("it waits while live data is away, and goes on when it is back", async () => {
    await page.goto(origin);
    await page.exposeFunction("bringBack", () => allowDatabase(true));
    await allowDatabase(false);
    const got = await page.evaluate(async (url) => {
      const { client, bringBack } = globalThis as unknown as PageGlobals;
      const statuses: number[] = [];
      const api = client.createClient<{ cities: Client.AnyType }>({
        url,
        appKey: "atlas",
        retries: 50,
        onRequest: ({ status }) => {
          if (statuses.push(status) === 2) void bringBack();
        },
      });
      const { data } = await api.cities.list({ perPage: 3 });
      return { length: data.length, statuses };
    }, server.url);
    expect(got.length).toBe(3);
    expect(got.statuses.slice(0, 2)).toEqual([200, 503]);
    expect([got.statuses.at(-1), new Set(got.statuses)]).toEqual([200, new Set([200, 503])]);
  });

  test("it works in a worker", async () => {
    await page.goto(origin);
    const total = await page.evaluate(`new Promise((resolve, reject) => {
      const worker = new Worker("/worker.js", { type: "module" });
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage("${server.url}");
    })`);
    const { json } = await server.get("/api/v1/cities", { appKey: "atlas" });
    expect([total, json.meta.total]).toEqual([json.meta.total, expect.any(Number)]);
  });

  test("the example without a build step lists, searches while one types, marks, and shows a city", async () => {
    await page.goto(`${origin}/cities.html?url=${server.url}`);
    await page.locator("li >> nth=24").waitFor();
    expect(await page.locator("[role=status]").textContent()).toBe("Requests that count: 0");
    const name = (await page.locator("li").first().textContent()) as string;
    await page.locator("input").fill(name.slice(0, 4).toUpperCase());
    await page.locator("mark").first().waitFor();
    expect((await page.locator("mark").first().textContent())?.toLowerCase()).toBe(name.slice(0, 4).toLowerCase());
    await page.locator("li button", { hasText: name }).first().click();
    await page.locator("article:not([hidden])").waitFor();
    expect(await page.locator("article").textContent()).toMatch(new RegExp(`^${name} is in .+\\.$`));
    expect(problems).toEqual([]);
  });
});

describe("in TypeScript, installed as a package", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "precast-app-"));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(ROOT, join(folder, "node_modules/precast"));
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    for (const name of ["atlas.ts", "journeys.ts"]) copyFileSync(join(EXAMPLES, name), join(folder, name));
    const [, code = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(ROOT, "README.md"), "utf8")) ?? [];
    expect(code.trim().split("\n").length).toBeLessThanOrEqual(10);
    writeFileSync(join(folder, "readme.ts"), code);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each([["nodenext"], ["preserve"]])(
    "the example and README's code compile strictly with the modules of %s",
    (kind) => {
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      const types = ["--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")];
      const how = ["--noEmit", "--strict", "--target", "es2023", "--module", kind, "--allowImportingTsExtensions"];
      execFileSync(process.execPath, [tsc, ...how, ...types, "journeys.ts", "readme.ts"], {
        cwd: folder,
        stdio: "pipe",
      });
    },
  );

  const run = (file: string, ...args: string[]) =>
    new Promise<string>((resolve, reject) => {
      const tsx = join(ROOT, "node_modules/tsx/dist/cli.mjs");
      execFile(process.execPath, [tsx, file, ...args], { cwd: folder }, (error, stdout) =>
        error === null ? resolve(stdout) : reject(error),
      );
    });

  test("the example prints journeys with their stops, for nothing", async () => {
    const printed = (await run("journeys.ts", server.url)).trimEnd().split("\n");
    expect(printed.length).toBeGreaterThan(2);
    for (const line of printed.slice(0, -1)) expect(line).toMatch(/^.+: [^?]+$/);
    expect(printed.at(-1)).toBe("Requests that count: 0");
  });

  test("README's code does what it says", async () => {
    const file = join(folder, "readme.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace("http://127.0.0.1:3000", server.url));
    const printed = await run("readme.ts");
    expect(printed).toMatch(/^(\S.* (\d+|null)\n)+\[\n? .*counted: true,.*free: '\/api\/v1\/cities'/s);
  });
});
