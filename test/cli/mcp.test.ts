/** `precast mcp`: an assistant reads the API by tools, hears what each call costs, and cannot spend more than it may. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { importBundle } from "../../cli/commands/import.ts";
import { holdPort, MAIN, openPlace, type Place } from "../support/cli.ts";
import { type ApiServer, buildSite, openApiServer, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const DEMO = fileURLToPath(new URL("../../cli/demo", import.meta.url));
const JOURNEY = "334fd717-7e45-59e0-b78a-34d7538538cc";

let store: Store;
let server: ApiServer;
let place: Place;

beforeAll(async () => {
  store = await openStore("postgres");
  await importBundle(store.database, DEMO, { prune: true, dryRun: false });
  await buildSite(store);
  server = await openApiServer(store);
  place = openPlace();
});
afterAll(async () => {
  await place.close();
  await server.close();
  expect(server.errors).toEqual([]);
  await store.close();
});

type Result = { readonly isError: boolean; readonly texts: readonly string[] };

/** An assistant that has started the program, and what it gets from a tool. */
async function openAssistant(...words: string[]) {
  const args = [MAIN, "mcp", "--app", "atlas", "--url", server.url, ...words];
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd: place.folder, stderr: "pipe" });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  onTestFinished(() => client.close());
  const call = async (name: string, input: Record<string, unknown> = {}): Promise<Result> => {
    const result = await client.callTool({ name, arguments: input });
    const content = result.content as readonly { readonly type: string; readonly text: string }[];
    return { isError: result.isError === true, texts: content.map(({ text }) => text) };
  };
  return { client, call };
}

test("the tools are the five reads, described by the schemas", async () => {
  const { client } = await openAssistant("--budget", "7");
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["catalog", "schema", "list", "get", "search"]);
  const [, schema, list, get, search] = tools;
  expect(list?.description).toMatch(
    /^- cities: Capitals, ports .*; fields name \(text\), .*; filter by name, .*climate.*; sort by name, /m,
  );
  expect(list?.description).toContain("At most 7 counted requests in all.");
  expect(get?.description).toMatch(/^- journeys: stops$/m);
  expect(search?.description).toMatch(/^- cities: name, /m);
  expect(schema?.inputSchema.properties?.type).toMatchObject({ enum: ["countries", "cities", "journeys"] });
  for (const tool of tools) expect(tool.annotations).toMatchObject({ readOnlyHint: true });
});

describe("a result", () => {
  test("is what the API answers, and says that it was free", async () => {
    const { call } = await openAssistant();
    const catalog = await call("catalog");
    expect(catalog).toMatchObject({
      isError: false,
      texts: ["Free. The catalog and the schemas are free.", expect.any(String)],
    });
    const [, json] = (await call("list", { type: "cities", filter: { climate: "highland" } })).texts;
    const { text } = await server.get("/api/v1/cities?filter[climate]=highland", { appKey: "atlas" });
    expect(json).toBe(text);
    const entry = JSON.parse((await call("get", { type: "journeys", id: JOURNEY })).texts[1] as string);
    expect(entry.id).toBe(JOURNEY);
    const same = await call("list", { type: "cities", filter: { climate: { in: ["highland"] } }, page: 1 });
    expect(same.texts).toEqual(["Free, as /api/v1/cities?filter[climate]=highland, which has the same answer.", text]);
  });

  test("says that it was counted, how often that was so, and what would be cheaper", async () => {
    const { call } = await openAssistant();
    const searched = await call("search", { type: "cities", q: "lighthouse" });
    expect(searched.texts[0]).toMatch(
      /^Counted\. Search is always counted\. 1 counted request so far\. Cheaper: a list with one equality filter \(name, .*\) is free\.$/,
    );
    const listed = await call("list", { type: "cities", filter: { climate: "highland" }, sort: "name" });
    expect(listed.texts[0]).toBe(
      "Counted. A list with more than one filter or sort is counted. 2 counted requests so far. Cheaper: /api/v1/cities?filter[climate]=highland is free, with another answer.",
    );
    const populated = await call("get", { type: "journeys", id: JOURNEY, populate: ["stops"] });
    expect(populated.texts[0]).toContain(`Cheaper: /api/v1/journeys/${JOURNEY} is free, with another answer.`);
    expect(JSON.parse(populated.texts[1] as string).stops[0].name).toEqual(expect.any(String));
  });

  test("is the API's own error where it refuses, with what that cost", async () => {
    const { call } = await openAssistant();
    const refused = await call("list", { type: "cities", sort: "climate" });
    expect(refused).toEqual({
      isError: true,
      texts: [
        expect.stringMatching(
          /^INVALID_SORT: 'climate' is a field of 'cities', but not a sortable one\. .* It was counted\. 1 counted request so far\.$/,
        ),
      ],
    });
    const missing = await call("get", { type: "cities", id: "no-id" });
    expect(missing).toEqual({ isError: true, texts: [expect.stringMatching(/^ENTRY_NOT_FOUND: .*UUIDs\.$/)] });
  });
});

test("counted calls beyond the budget are refused before they are sent, also several at once; free ones go on", async () => {
  const { call } = await openAssistant("--budget", "2");
  const counted = () => server.seen.filter((one) => JSON.stringify(one).includes('"counted":true')).length;
  const before = counted();
  const results = await Promise.all(["old", "port", "sea", "lake"].map((q) => call("search", { type: "cities", q })));
  expect(results.map(({ isError }) => isError)).toEqual([false, false, true, true]);
  expect(results[1]?.texts[0]).toContain("2 counted requests so far, of 2 that are allowed.");
  expect(results[3]?.texts[0]).toMatch(
    /^COUNTED: \/api\/v1\/cities\/search\?q=lake is counted\. .* Cheaper: a list with one equality filter /,
  );
  expect(counted() - before).toBe(2);
  expect(await call("list", { type: "cities", page: 2 })).toMatchObject({ isError: false });
  expect(await call("list", { type: "cities", perPage: 2 })).toMatchObject({ isError: true });
});

describe("it ends", () => {
  test("with 0 when the assistant has closed the input", async () => {
    // A command of a place has no input.
    const ended = await place.run(`mcp --app atlas --url ${server.url}`);
    expect(ended).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  test("with 0 when it is told to stop", async () => {
    const before = server.seen.length;
    const child = spawn(process.execPath, [MAIN, "mcp", "--app", "atlas", "--url", server.url], { cwd: place.folder });
    await until("it has read the schemas", () => server.seen.length >= before + 4);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("with 1 where nothing answers", async () => {
    const { port, release } = await holdPort();
    await release();
    const { code, stderr } = await place.run(`mcp --app atlas --url http://127.0.0.1:${port}`);
    const sentence = `The content types could not be read from http://127.0.0.1:${port} (connect ECONNREFUSED 127.0.0.1:${port}).\n`;
    expect([code, stderr]).toEqual([1, sentence]);
  });

  test.each([
    ["without the key of an app", "mcp", /^--app is missing/],
    [
      "with a key that no app has",
      "mcp --app nobody --url URL",
      /could not be read from http.* \(INVALID_APP_KEY: No app has the key/,
    ],
    ["with an address that is none", "mcp --app atlas --url nowhere", /^--url must be an address such as/],
  ])("with 1 and a sentence %s", async (_, line, sentence) => {
    const { code, stdout, stderr } = await place.run(line.replace("URL", server.url));
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr.trimEnd()).toMatch(sentence);
  });
});
