/** How ports are opened: with listhen, of whose tools for development nothing is loaded, and which changes no request. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS, type Listening, listen } from "../../server/http/listen.ts";
import { openEmbeddedPlace, type Place } from "../support/cli.ts";
import { ask } from "../support/site.ts";

/** Certificates, WebSockets, the clipboard, tunnels, file watchers, and what they load code with. */
const TOOLS = /node_modules\/(node-forge|crossws|tinyclip|untun|@parcel|jiti)\//;
const LISTHEN = /node_modules\/listhen\//;

const open = (port: number, host = "127.0.0.1"): Promise<Listening> =>
  listen((_, outgoing) => void outgoing.end('"here"'), host, port, { ...LIMITS, drain: 0 });

describe("of listhen, the program loads", () => {
  let place: Place;
  beforeAll(async () => {
    place = await openEmbeddedPlace();
  });
  afterAll(() => place.close());

  test("only what opens ports, when it serves", async () => {
    const folder = join(place.folder, "serve");
    const server = await place.serve("--admin-port 0", { NODE_V8_COVERAGE: folder });
    await server.get("/api/v1/_schemas");
    await server.stop();
    const loaded = loadedIn(folder);
    expect(loaded.filter((path) => LISTHEN.test(path))).not.toEqual([]);
    expect(loaded.filter((path) => TOOLS.test(path))).toEqual([]);
  });

  test.each(["--version", "build --help", "serve --help", "edge nginx"])("nothing for `%s`", async (line) => {
    const folder = join(place.folder, line.replace(/\W/g, ""));
    await place.run(line, { NODE_V8_COVERAGE: folder });
    const loaded = loadedIn(folder);
    expect(loaded.filter((path) => path.endsWith("cli/main.ts"))).toHaveLength(1);
    expect(loaded.filter((path) => LISTHEN.test(path))).toEqual([]);
  });

  test("nothing in workers", async () => {
    const folder = join(place.folder, "workers");
    const server = await place.serve("--workers 2", { NODE_V8_COVERAGE: folder });
    await server.get("/api/v1/_schemas");
    await server.stop();
    const loaded = loadedIn(folder);
    expect(loaded.filter((path) => path.endsWith("server/http/listen.ts"))).toHaveLength(3);
    expect(loaded.filter((path) => LISTHEN.test(path))).toEqual([]);
  });

  /** The sources of which each process has loaded a file, once for each process. */
  function loadedIn(folder: string): string[] {
    return readdirSync(folder).flatMap((name) => {
      const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { result: { url: string }[] };
      return [...new Set(result.filter(({ url }) => url.startsWith("file:")).flatMap(({ url }) => sourcesOf(url)))];
    });
  }

  function sourcesOf(url: string): string[] {
    const map = `${fileURLToPath(url)}.map`;
    return existsSync(map) ? (JSON.parse(readFileSync(map, "utf8")).sources as string[]) : [url];
  }
});

describe("what listhen would change is as it was asked for:", () => {
  test("a port that browsers refuse", async () => {
    for (const port of [10_080, 6_697, 6_566, 6_000]) {
      const opened = await open(port).catch(() => null);
      if (opened === null) continue;
      expect(opened.url).toBe(`http://127.0.0.1:${port}`);
      expect((await ask(opened.url, "/")).json).toBe("here");
      await opened.stop();
      return;
    }
    throw new Error("all of the ports are in use");
  });

  test("a host whose name has other characters, instead of which it would listen on localhost", async () => {
    await expect(open(0, "not_a_name.invalid")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  test("a port that is in use, instead of which it would open another, is refused with the system's error", async () => {
    const first = await open(0);
    await expect(open(Number(new URL(first.url).port))).rejects.toMatchObject({ code: "EADDRINUSE" });
    await first.stop();
  });
});
