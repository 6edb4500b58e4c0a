/** Checks the HTTP layer on real sockets: malformed, unusual, oversized, pipelined and slow requests. */
import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Limits } from "../../server/http/connection.ts";
import { LIMITS, listen } from "../../server/http/listen.ts";
import { openPlace, type Place } from "../support/cli.ts";
import { entry, field, libraryId } from "../support/library.ts";
import type { Bundle } from "../support/model-bundle.ts";
import { type ApiServer, buildSite, loadBundles, openApiServer, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";
import { openWire, readAnswers, type Wire, type WireAnswer } from "../support/wire.ts";

const KEY = "door";
const keyed = (host: string) => `Host: ${host}\r\nX-App-Key: ${KEY}\r\n`;
const HOST = keyed("x");
const LIST = "/api/v1/pages";
const GET = `GET ${LIST} HTTP/1.1\r\n${HOST}`;
/** An entry whose answer is larger than the kernel's socket buffers. */
const LARGE = `/api/v1/pages/${libraryId(1)}`;
const LARGE_SIZE = 12_000_000;

let store: Store;
let api: ApiServer;

beforeAll(async () => {
  store = await openStore("postgres");
  await loadBundles(store, [bundle(LARGE_SIZE)]);
  await buildSite(store);
  api = await openApiServer(store);
});

afterAll(async () => {
  await api.close();
  expect(api.errors).toEqual([]);
  await store.close();
});

function bundle(size: number): Bundle {
  const pages = [1, 2, 3].map((number) =>
    entry(number, "2026-01-01T00:00:00Z", {
      title: `Page ${number}`,
      body: `<p>${"text ".repeat(number === 1 ? size / 5 : 10)}</p>`,
    }),
  );
  const fields = [field("title", "text", { searchable: true }), field("body", "rich_text")];
  const texts = { name: "Pages", description: "", icon: "" };
  const type = { slug: "pages", ...texts, fields, filterable_fields: ["title"], sortable_fields: ["title"] };
  return { app: { key: KEY, name: "Door" }, types: [type], entries: { pages } };
}

/** Sends bytes and resolves to all answers that arrive until the connection is closed. */
async function refused(bytes: string, url = api.url): Promise<WireAnswer[]> {
  const wire = await openWire(url);
  wire.send(bytes);
  return readAnswers(await wire.closed);
}

function expectRefusal(answer: WireAnswer | undefined, status: number, code: string): void {
  expect(answer, code).toBeDefined();
  const { headers, body } = answer as WireAnswer;
  expect([answer?.status, JSON.parse(body)], body).toEqual([status, { error: { code, message: expect.any(String) } }]);
  expect(JSON.parse(body).error.message).toMatch(/^.{20,}\.$/);
  expect(headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": expect.stringContaining("Retry-After"),
    vary: "X-App-Key",
    connection: "close",
    "x-request-id": expect.any(String),
  });
  expect(headers.date).toMatch(/GMT$/);
}

async function stillServes(url = api.url): Promise<void> {
  const wire = await openWire(url);
  wire.send(`${GET}\r\n`);
  expect((await wire.answers(1))[0]?.status).toBe(200);
  wire.socket.destroy();
}

const many = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at)).join("");
/** A request target of exactly this many bytes. */
const target = (bytes: number) => `${LIST}?x=`.padEnd(bytes, "a");

describe("what the server reports to operators", () => {
  test("malformed and oversized requests are reported uncounted, with the request id sent to the client", async () => {
    const before = api.seen.length;
    const [long] = await refused(`GET ${target(16_385)} HTTP/1.1\r\n${HOST}X-Request-Id: mine\r\n\r\n`);
    const [broken] = await refused("\x00\x01 hello\r\n\r\n");
    expect(long?.headers["x-request-id"]).toBe("mine");
    const unmetered = { shape: null, counted: false, source: "none" };
    expect(api.seen.slice(before)).toMatchObject([
      { id: "mine", method: "GET", status: 414, ...unmetered },
      { id: broken?.headers["x-request-id"], method: "-", status: 400, ...unmetered },
    ]);
  });
});

describe("malformed or ambiguous HTTP", () => {
  test.each([
    ["a method that is not a token", `G(T) ${LIST} HTTP/1.1\r\n${HOST}\r\n`],
    ["arbitrary bytes", "\x00\x01\x02\x03 hello\r\n\r\n"],
    ["a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".padEnd(100, "\x01")],
    ["an HTTP/2 connection preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["an HTTP/1.1 request with the version HTTP/2.0", `GET ${LIST} HTTP/2.0\r\n${HOST}\r\n`],
    ["an unknown HTTP version", `GET ${LIST} HTTP/9.9\r\n${HOST}\r\n`],
    ["an HTTP/0.9 request", `GET ${LIST}\r\n\r\n`],
    ["a target with a space", `GET ${LIST}/a b HTTP/1.1\r\n${HOST}\r\n`],
    ["a target with raw bytes", `GET ${LIST}/\xff HTTP/1.1\r\n${HOST}\r\n`],
    ["a target without a leading slash", `GET pages HTTP/1.1\r\n${HOST}\r\n`],
    ["line feeds without carriage returns", `GET ${LIST} HTTP/1.1\nHost: x\n\n`],
    ["no Host header", `GET ${LIST} HTTP/1.1\r\nX-App-Key: ${KEY}\r\n\r\n`],
    ["two Host headers", `${GET}Host: y\r\n\r\n`],
    ...[
      "a b/c",
      "a b",
      "a/b",
      "user@a",
      "a?b",
      "a#b",
      "a:b",
      "a:1:2",
      "http://a",
      "::1",
      "[::1",
      "[a b]",
      "[]",
      "a%2",
      "\xe9",
    ].map((host): [string, string] => [`the Host header ${host}`, `GET ${LIST} HTTP/1.1\r\n${keyed(host)}\r\n`]),
    ["an invalid Host header in HTTP/1.0", `GET ${LIST} HTTP/1.0\r\n${keyed("a b")}\r\n`],
    ["a folded header", `${GET}X-A: b\r\n c\r\n\r\n`],
    ["a header without a name", `${GET}: b\r\n\r\n`],
    ["a space before the colon of a header", `${GET}Content-Length : 0\r\n\r\n`],
    ["a carriage return in a header", `${GET}X-A: b\rX-B: c\r\n\r\n`],
    ["a zero byte in a header", `${GET}X-A: \x00\r\n\r\n`],
    ["two different Content-Length headers", `${GET}Content-Length: 1\r\nContent-Length: 2\r\n\r\na`],
    ["two equal Content-Length headers", `${GET}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`],
    ["a list in Content-Length", `${GET}Content-Length: 1, 1\r\n\r\na`],
    ["a negative Content-Length", `${GET}Content-Length: -1\r\n\r\n`],
    ["a hexadecimal Content-Length", `${GET}Content-Length: 0x10\r\n\r\n`],
    [
      "Content-Length before Transfer-Encoding",
      `${GET}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "Transfer-Encoding before Content-Length",
      `${GET}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n`,
    ],
    ["a Transfer-Encoding other than chunked", `${GET}Transfer-Encoding: gzip\r\n\r\n`],
    ["a Transfer-Encoding with gzip before chunked", `${GET}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ["a Transfer-Encoding with gzip after chunked", `${GET}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
    [
      "two Transfer-Encoding headers",
      `${GET}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    ],
    ["a Transfer-Encoding in HTTP/1.0", `GET ${LIST} HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ])("%s: one answer, 400 BAD_REQUEST, then the connection is closed", async (_, bytes) => {
    const inner = `GET /api/v1/_schemas HTTP/1.1\r\n${HOST}\r\n`;
    const answers = await refused(bytes + inner);
    expect(answers.length).toBe(1);
    expectRefusal(answers[0], 400, "BAD_REQUEST");
  });

  test.each([
    "",
    "a",
    "a:80",
    "a:",
    ":80",
    "my_shop.example.",
    "127.0.0.1:3000",
    "[::1]",
    "[::ffff:127.0.0.1]:80",
    "[v1.a:b]",
    "a%20b",
    "(a)",
  ])("the Host header %j is valid", async (host) => {
    const [answer] = await refused(`GET ${LIST} HTTP/1.1\r\n${keyed(host)}Connection: close\r\n\r\n`);
    expect(answer?.status).toBe(200);
  });

  test("a request that the client ends midway gets 400 BAD_REQUEST", async () => {
    const wire = await openWire(api.url);
    wire.socket.end("GET /api/v1/pa");
    expectRefusal(readAnswers(await wire.closed)[0], 400, "BAD_REQUEST");
  });

  test("valid requests pipelined before a malformed one are answered before its 400", async () => {
    const live = `GET ${LIST}?per_page=2 HTTP/1.1\r\n${HOST}\r\n`;
    const answers = await refused(`${live}${GET}\r\n${live}NONSENSE\r\n\r\n${GET}\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 400]);
    expect(answers[0]?.body).toBe(answers[2]?.body);
    expectRefusal(answers[3], 400, "BAD_REQUEST");
  });

  test("a malformed request gets its 400 also when the answer before it was too large to be sent at once", async () => {
    const wire = await openWire(api.url);
    wire.send(`GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`);
    await until("the large answer", () => wire.size() > LARGE_SIZE);
    wire.send("GET\r\n\r\n");
    expect(readAnswers(await wire.closed).map(({ status }) => status)).toEqual([200, 400]);
  });

  test("a request that follows one with Connection: close is not answered", async () => {
    const answers = await refused(`GET ${LIST}?per_page=1 HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n${GET}\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([200]);
  });

  test("a client that connects and ends the connection without a request receives no bytes", async () => {
    const wire = await openWire(api.url);
    wire.socket.end();
    expect(await wire.closed).toBe("");
  });

  test.each(["FOO", "get", "GETS", "GE", "M-S!"])(
    "the unknown method %s gets 405 METHOD_NOT_ALLOWED",
    async (method) => {
      const answers = await refused(`${GET}\r\n${method} ${LIST} HTTP/1.1\r\n${HOST}\r\n`);
      expect(answers.map(({ status }) => status)).toEqual([200, 405]);
      expectRefusal(answers[1], 405, "METHOD_NOT_ALLOWED");
      expect(answers[1]?.headers.allow).toBe("GET, HEAD, OPTIONS");
      expect(JSON.parse(answers[1]?.body ?? "").error.message).toMatch(`${method} is not allowed`);
    },
  );

  test("CONNECT gets 405 METHOD_NOT_ALLOWED and opens no tunnel", async () => {
    const answers = await refused("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\nhello");
    expect(answers.length).toBe(1);
    expectRefusal(answers[0], 405, "METHOD_NOT_ALLOWED");
    expect(answers[0]?.headers.allow).toBe("GET, HEAD, OPTIONS");
  });

  test("CONNECT of a client that resets the connection does not end the server", async () => {
    const wire = await openWire(api.url);
    wire.send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n");
    wire.socket.resetAndDestroy();
    await wire.closed;
    await stillServes();
  });
});

describe("unusual but valid HTTP", () => {
  const first = async (bytes: string) => {
    const wire = await openWire(api.url);
    wire.send(bytes);
    const [answer] = await wire.answers(1);
    // A second request shows whether the server keeps the connection open.
    wire.send(`${GET}\r\n`);
    const open = (await Promise.race([wire.answers(2), wire.closed.then(() => [])]).catch(() => [])).length === 2;
    wire.socket.destroy();
    return { ...(answer as WireAnswer), open };
  };

  test.each([
    ["an absolute target", `GET http://x${LIST} HTTP/1.1\r\n${HOST}\r\n`, 200, true],
    ["an absolute target of another host", `GET https://example.com:1${LIST} HTTP/1.1\r\n${HOST}\r\n`, 200, true],
    ["the target *", `GET * HTTP/1.1\r\n${HOST}\r\n`, 404, true],
    ["OPTIONS *", `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 204, true],
    ["an HTTP/1.0 request", `GET ${LIST} HTTP/1.0\r\nX-App-Key: ${KEY}\r\n\r\n`, 200, false],
    [
      "an HTTP/1.0 request with keep-alive",
      `GET ${LIST} HTTP/1.0\r\nX-App-Key: ${KEY}\r\nConnection: keep-alive\r\n\r\n`,
      200,
      true,
    ],
    ["an empty Host header", `GET ${LIST} HTTP/1.1\r\nHost:\r\nX-App-Key: ${KEY}\r\n\r\n`, 200, true],
    ["a request after empty lines", `\r\n\r\n${GET}\r\n`, 200, true],
    ["an upgrade to WebSocket", `${GET}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 200, true],
    [
      "an upgrade to HTTP/2",
      `${GET}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n`,
      200,
      true,
    ],
    ["a request with Expect: 100-continue", `${GET}Expect: 100-continue\r\n\r\n`, 200, false],
    ["a request with an unknown Expect header", `${GET}Expect: the-unexpected\r\n\r\n`, 200, true],
    ["a request with Content-Length: 0", `${GET}Content-Length: 0\r\n\r\n`, 200, true],
    ["a DELETE request", `DELETE ${LIST} HTTP/1.1\r\n${HOST}\r\n`, 405, true],
    ["a PROPFIND request", `PROPFIND ${LIST} HTTP/1.1\r\n${HOST}\r\n`, 405, true],
  ])(
    "%s gets the expected status, and its connection stays open or closes as the answer says",
    async (_, bytes, status, open) => {
      const answer = await first(bytes);
      expect([answer.status, answer.open]).toEqual([status, open]);
      expect(answer.headers.connection).toBe(open ? "keep-alive" : "close");
    },
  );

  test("the Keep-Alive timeout exceeds the 60 seconds of load balancers", async () => {
    const { headers } = await first(`${GET}\r\n`);
    expect(Number(/^timeout=(\d+)$/.exec(headers["keep-alive"] ?? "")?.[1])).toBeGreaterThan(60);
  });
});

describe("request bodies", () => {
  const chunks = `${GET}Transfer-Encoding: chunked\r\n\r\n`;
  const inner = `GET /api/v1/_schemas HTTP/1.1\r\n${HOST}\r\n`;

  test.each([
    ["a GET with a body", `${GET}Content-Length: 5\r\n\r\nhello`, 200],
    ["a GET with a request as its body", `${GET}Content-Length: ${inner.length}\r\n\r\n${inner}`, 200],
    ["a GET with a chunked body", `${chunks}5\r\nhello\r\n0\r\n\r\n`, 200],
    ["a GET whose chunks have extensions and trailers", `${chunks}5;a=b\r\nhello\r\n0\r\nX-App-Key: no\r\n\r\n`, 200],
    ["a GET with malformed chunks", `${chunks}ZZ\r\nhello\r\n`, 200],
    ["a live GET with a body", `GET ${LIST}?per_page=1 HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, 200],
    ["a POST", `POST ${LIST} HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, 405],
    ["a GET with Expect: 100-continue and a body", `${GET}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`, 200],
  ])("%s gets one answer with Connection: close; a request sent behind it gets none", async (_, bytes, status) => {
    const wire = await openWire(api.url);
    wire.send(bytes + inner);
    const [answer] = await wire.answers(1);
    expect([answer?.status, answer?.headers.connection]).toEqual([status, "close"]);
    wire.socket.end();
    expect(readAnswers(await wire.closed).length).toBe(1);
  });

  test("what is behind a body is not begun either when it has come while an earlier request was answered", async () => {
    const before = api.seen.length;
    const live = `GET ${LIST}?per_page=1 HTTP/1.1\r\n${HOST}`;
    const answers = await refused(`${live}\r\n${GET}Content-Length: 5\r\n\r\nhello${GET}\r\n${GET}\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await stillServes();
    expect(api.seen.slice(before).map(({ target }) => target)).toEqual([`${LIST}?per_page=1`, LIST, LIST]);
  });

  test("a request is answered although most of its body never arrives", async () => {
    const answers = await refused(`${GET}Content-Length: 1000000000\r\n\r\nabc`);
    expect(answers.map(({ status }) => status)).toEqual([200]);
  });

  test("a client that sends a body of 64 MB receives its 405", async () => {
    const wire = await openWire(api.url);
    wire.send(`POST ${LIST} HTTP/1.1\r\n${HOST}Content-Length: 64000000\r\n\r\n`);
    const chunk = Buffer.alloc(64_000, "a");
    for (let sent = 0; sent < 64_000_000 && wire.socket.writable; sent += chunk.length) {
      if (!wire.socket.write(chunk))
        await Promise.race([new Promise((done) => wire.socket.once("drain", done)), wire.closed]);
    }
    wire.socket.end();
    expect(readAnswers(await wire.closed).map(({ status }) => status)).toEqual([405]);
  });
});

describe("size limits", () => {
  test.each([
    ["a target of 16,384 bytes", target(16_384), 200],
    ["a target of 16,385 bytes", target(16_385), 414],
    ["a target of 60,000 bytes", target(60_000), 414],
    ["a target of 1 MB", target(1_000_000), 414],
  ])("%s: 414 URI_TOO_LONG above 16,384 bytes, else 200", async (_, path, status) => {
    const [answer] = await refused(`GET ${path} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    if (status === 414) expectRefusal(answer, 414, "URI_TOO_LONG");
    else expect(answer?.status).toBe(status);
  });

  const others = `${GET}Connection: close\r\n`;
  test.each([
    ["100 headers", `${others}${many(97, (at) => `X-${at}: a\r\n`)}\r\n`, 200],
    ["101 headers", `${others}${many(98, (at) => `X-${at}: a\r\n`)}\r\n`, 431],
    ["101 times the same header", `${others}${many(98, () => "X-A: a\r\n")}\r\n`, 431],
    ["10,000 headers", `${others}${many(10_000, () => "A:b\r\n")}\r\n`, 431],
    ["a header of 16,000 bytes", `${others}X-A: ${"a".repeat(16_000)}\r\n\r\n`, 200],
    ["a header of 16,385 bytes", `${others}X-A: ${"a".repeat(16_385)}\r\n\r\n`, 431],
    ["headers of 20,000 bytes", `${others}${many(20, (at) => `X-${at}: ${"a".repeat(1_000)}\r\n`)}\r\n`, 431],
    ["a header of 1 MB", `${others}X-A: ${"a".repeat(1_000_000)}\r\n\r\n`, 431],
  ])("%s: 431 HEADERS_TOO_LARGE above 100 headers or 16,384 bytes, else 200", async (_, bytes, status) => {
    const [answer] = await refused(bytes);
    if (status === 431) expectRefusal(answer, 431, "HEADERS_TOO_LARGE");
    else expect(answer?.status).toBe(status);
  });

  test("an app key behind too many headers gets 431 HEADERS_TOO_LARGE, not MISSING_APP_KEY", async () => {
    const [answer] = await refused(
      `GET ${LIST} HTTP/1.1\r\nHost: x\r\n${many(200, () => "A: b\r\n")}X-App-Key: ${KEY}\r\n\r\n`,
    );
    expectRefusal(answer, 431, "HEADERS_TOO_LARGE");
  });
});

describe("a client that pipelines requests", () => {
  test("receives all answers in the order of its requests", async () => {
    const wire = await openWire(api.url);
    const targets = Array.from({ length: 50 }, (_, at) =>
      at % 3 === 0 ? `${LIST}?per_page=${at + 1}` : `${LIST}/${at}`,
    );
    wire.send(many(50, (at) => `GET ${targets[at]} HTTP/1.1\r\n${HOST}\r\n`));
    const answers = await wire.answers(50);
    expect(answers.map(({ status }) => status)).toEqual(targets.map((_, at) => (at % 3 === 0 ? 200 : 404)));
    const sizes = answers.filter(({ status }) => status === 200).map(({ body }) => JSON.parse(body).meta.per_page);
    expect(sizes).toEqual(targets.flatMap((_, at) => (at % 3 === 0 ? [at + 1] : [])));
    wire.socket.destroy();
  });

  test.each([
    ["a message that is not HTTP", "\u0001\r\n\r\n", 400],
    ["a CONNECT request", "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n", 405],
    ["a request with 200 headers", `GET / HTTP/1.1\r\n${many(200, () => "A: b\r\n")}\r\n`, 431],
  ])(
    "%s, sent in one write behind a request answered from memory, is refused after that answer",
    async (_, bytes, status) => {
      const wire = await openWire(api.url);
      wire.send(`${GET}\r\n`);
      await wire.answers(1);
      wire.send(`${GET}\r\n${bytes}`);
      expect(readAnswers(await wire.closed).map((answer) => answer.status)).toEqual([200, 200, status]);
      await stillServes();
    },
  );

  test("receives at least 100 of 2,000 answers, the last one with Connection: close", async () => {
    const answers = await refused(many(2_000, () => `${GET}\r\n`));
    expect(answers.length).toBeGreaterThanOrEqual(100);
    expect(answers.length).toBeLessThan(2_000);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(answers.map(({ headers }) => headers.connection).lastIndexOf("keep-alive")).toBe(answers.length - 2);
    expect(answers.at(-1)?.headers.connection).toBe("close");
  });

  test("is not read further while its first request is unanswered, and then receives 101 answers", async () => {
    const first = new EventEmitter();
    const app = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
      if (incoming.url === "/slow") await once(first, "found");
      outgoing.end("here");
    };
    const own = await listen(app, "127.0.0.1", 0);
    let read = 0;
    const onRead = () => void read++;
    subscribe("http.server.request.start", onRead);
    const wire = await openWire(own.url);
    const sent = 40_000;
    wire.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    wire.send(many(sent, () => `GET / HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(500)}\r\n\r\n`));
    // These requests give the server time to read all that was sent.
    for (let count = 0; count < 200; count++) await refused("GET / HTTP/1.0\r\n\r\n", own.url);
    first.emit("found");
    expect(readAnswers(await wire.closed)).toHaveLength(101);
    unsubscribe("http.server.request.start", onRead);
    expect(read).toBeLessThan(sent / 10);
    await own.stop();
  });

  test("does not keep the server from answering others when it disconnects before it has its answers", async () => {
    const wire = await openWire(api.url);
    wire.send(many(60, () => `GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`));
    await until("the first bytes", () => wire.size() > 0);
    wire.socket.resetAndDestroy();
    await stillServes();
  });
});

describe("many clients that pipeline requests", () => {
  /** Opens connections with so many requests each, of which the first is answered when the last has been read. */
  async function crowd(connections: number, requests: number, limits: Partial<Limits> = {}) {
    const first = new EventEmitter();
    const begun: { readonly url: string; readonly turn: number }[] = [];
    let turn = 0;
    let counting = setImmediate(function count() {
      turn++;
      counting = setImmediate(count);
    });
    const app = async ({ url = "" }: IncomingMessage, outgoing: ServerResponse) => {
      begun.push({ url, turn });
      if (url.endsWith("/0")) await once(first, "found");
      outgoing.end("here");
    };
    const own = await listen(app, "127.0.0.1", 0, { ...LIMITS, ...limits });
    let read = 0;
    const onRead = () => void read++;
    subscribe("http.server.request.start", onRead);
    const wires = await Promise.all(Array.from({ length: connections }, () => openWire(own.url)));
    await until("all connections", () => own.connections().open === connections);
    for (const [number, wire] of wires.entries())
      wire.send(many(requests, (at) => `GET /${number}/${at} HTTP/1.1\r\nHost: x\r\n\r\n`));
    await until("all requests", () => read === connections * requests);
    unsubscribe("http.server.request.start", onRead);
    begun.length = 0;
    first.emit("found");
    const stop = () => {
      clearImmediate(counting);
      return own.stop();
    };
    return { wires, begun, stop };
  }

  test("are answered in turn, one answer of each in a turn of the event loop", async () => {
    const { wires, begun, stop } = await crowd(5, 40);
    await Promise.all(wires.map((wire) => wire.answers(40)));
    for (const number of wires.keys()) {
      const turns = begun.filter(({ url }) => url.startsWith(`/${number}/`)).map(({ turn }) => turn);
      expect([turns.length, new Set(turns).size]).toEqual([39, 39]);
    }
    for (const wire of wires) wire.socket.destroy();
    await stop();
  });

  test.each([
    [2, 40],
    [5, 16],
    [20, 8],
  ])(
    "have, on %i connections, %i requests waiting on each of the 80 that may wait, or 8",
    async (connections, most) => {
      const { wires, stop } = await crowd(connections, 60, { waiting: 80 });
      for (const wire of wires) {
        const answers = readAnswers(await wire.closed);
        expect(answers).toHaveLength(most + 1);
        expect(answers.at(-1)?.headers.connection).toBe("close");
      }
      await stop();
    },
  );
});

describe("clients that do not read", () => {
  /** Bytes that the system holds for clients of this port, of closed connections too (proc(5)). */
  function heldFor(url: string): number {
    const lines = readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1);
    const port = `:${Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0")}`;
    const own = lines.map((line) => line.trim().split(/\s+/)).filter(([, local]) => local?.endsWith(port));
    return own.reduce((sum, [, , , , queues = ""]) => sum + Number.parseInt(queues, 16), 0);
  }

  test.each([
    ["to pipelined requests, with few answers", 99, 40_000],
    ["in the middle of an answer", 1, LARGE_SIZE],
  ])("are disconnected %s, and the system holds nothing for them any more", async (_, requests, size) => {
    let begun = 0;
    const app = (_incoming: IncomingMessage, outgoing: ServerResponse) => {
      begun++;
      outgoing.end("a".repeat(size));
    };
    const own = await listen(app, "127.0.0.1", 0, { ...LIMITS, stall: 500 });
    const wire = await openWire(own.url);
    wire.socket.pause();
    wire.send(many(requests, () => "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    await until("bytes that are not read", () => heldFor(own.url) > 0);
    await until("the end of the connection", () => own.connections().open === 0);
    expect(begun).toBeLessThanOrEqual(Math.ceil(LIMITS.unread / size) + 2);
    expect(heldFor(own.url)).toBe(0);
    wire.socket.destroy();
    await own.stop();
  });

  test("do not keep those that read from all answers to pipelined requests for large answers", async () => {
    const wire = await openWire(api.url);
    wire.send(many(5, () => `GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`));
    await until("all answers", () => wire.size() > 5 * LARGE_SIZE || wire.socket.closed);
    expect(wire.size()).toBeGreaterThan(5 * LARGE_SIZE);
    wire.socket.destroy();
  });
});

describe("a server with as many connections as it may have", () => {
  const SLOW = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
  const QUICK = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

  test("closes the one that is idle for longest for a new one, refuses new ones while none is idle, and says so once", async () => {
    const slow = new EventEmitter();
    const app = async ({ url }: IncomingMessage, outgoing: ServerResponse) => {
      if (url === "/slow") await once(slow, "found");
      outgoing.end("here");
    };
    const warnings: string[] = [];
    const limits = { ...LIMITS, connections: 3 };
    const own = await listen(app, "127.0.0.1", 0, limits, null, (text) => warnings.push(text));
    const ask = async (wire: Wire, count = 1) => {
      wire.send(QUICK);
      await wire.answers(count);
    };
    const [first, second, busy] = [await openWire(own.url), await openWire(own.url), await openWire(own.url)];
    await ask(first);
    await ask(second);
    await ask(first, 2);
    busy.send(SLOW);
    await until("the slow request", () => slow.listenerCount("found") === 1);
    expect([own.connections(), warnings]).toEqual([{ open: 3, refused: 0, evicted: 0 }, []]);

    const third = await openWire(own.url);
    await ask(third);
    expect(readAnswers(await second.closed)).toHaveLength(1);
    expect(own.connections()).toEqual({ open: 3, refused: 0, evicted: 1 });
    await ask(first, 3);

    first.send(SLOW);
    third.send(SLOW);
    await until("the slow requests", () => slow.listenerCount("found") === 3);
    for (let time = 0; time < 2; time++) expect(await (await openWire(own.url)).closed).toBe("");
    expect(own.connections()).toEqual({ open: 3, refused: 2, evicted: 1 });
    slow.emit("found");
    await Promise.all([busy.answers(1), third.answers(2), first.answers(4)]);
    expect(warnings).toEqual([expect.stringMatching(/^This process has 3 connections open.* --max-connections.*\.$/)]);

    for (const wire of [first, busy, third]) wire.socket.destroy();
    await until("fewer connections", () => own.connections().open === 0);
    const later = await Promise.all([1, 2, 3, 4].map(() => openWire(own.url)));
    await until("one to be closed", () => own.connections().evicted === 2);
    expect(warnings).toHaveLength(2);
    for (const wire of later) wire.socket.destroy();
    await own.stop();
  });
});

describe("a server that is told to stop", () => {
  test.each([
    ["a large answer that is being sent", 1],
    ["all answers to pipelined requests", 3],
  ])("finishes %s, and refuses new connections", async (_, count) => {
    // Connections are closed because their answers are sent, and not because the time is over.
    const limits = { drain: 3_600_000 };
    const own = await openApiServer(
      { ...store, folder: join(store.folder, "stops") },
      join(store.folder, "out"),
      limits,
    );
    const wire = await openWire(own.url);
    wire.send(many(count, () => `GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`));
    await once(wire.socket, "data");
    wire.socket.pause();
    const closed = own.close();
    expect(await refused(`${GET}\r\n`, own.url).catch((error) => error.code)).toBe("ECONNREFUSED");
    wire.socket.resume();
    const answers = readAnswers(await wire.closed);
    expect(answers.map(({ status }) => status)).toEqual(Array(count).fill(200));
    expect(answers.every(({ body }) => body.length > LARGE_SIZE)).toBe(true);
    await closed;
  });
});

describe("slow clients", () => {
  let strict: ApiServer;
  beforeAll(async () => {
    // Stalled clients are looked for every second, which must not restart their time.
    const limits = { headers: 500, request: 1_000, idle: 2_000, stall: 1_500, linger: 200, connections: 3 };
    strict = await openApiServer({ ...store, folder: join(store.folder, "strict") }, join(store.folder, "out"), limits);
  });
  afterAll(async () => {
    await strict.close();
    expect(strict.errors).toEqual([]);
  });

  test("headers that stop arriving before their end get 408 REQUEST_TIMEOUT", async () => {
    const answers = await refused(`${GET}X-A: `, strict.url);
    expect(answers.length).toBe(1);
    expectRefusal(answers[0], 408, "REQUEST_TIMEOUT");
  });

  test("headers that keep arriving slowly without an end get 408 REQUEST_TIMEOUT", async () => {
    const wire = await openWire(strict.url);
    wire.send(GET);
    const drip = setInterval(() => wire.send("X-A: a\r\n"), 50);
    const text = await wire.closed;
    clearInterval(drip);
    expectRefusal(readAnswers(text)[0], 408, "REQUEST_TIMEOUT");
  });

  test("a second request on a connection gets 408 when its headers do not end", async () => {
    const answers = await refused(`${GET}\r\n${GET}`, strict.url);
    expect(answers.map(({ status }) => status)).toEqual([200, 408]);
  });

  test("a connection without a request is closed without an answer", async () => {
    expect(await (await openWire(strict.url)).closed).toBe("");
  });

  test("an idle connection outlasts the request timeouts and is closed after the idle timeout", async () => {
    const wire = await openWire(strict.url);
    wire.send(`${GET}\r\n`);
    await wire.answers(1);
    const start = performance.now();
    await until("more time than a request has", () => performance.now() - start > 1_200);
    wire.send(`${GET}\r\n`);
    expect((await wire.answers(2)).map(({ status }) => status)).toEqual([200, 200]);
    // The idle timeout closes the connection.
    expect(readAnswers(await wire.closed).length).toBe(2);
  });

  test("a client that does not read its answer is disconnected", async () => {
    const wire = await openWire(strict.url);
    wire.socket.pause();
    wire.send(many(20, () => `GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`));
    for (const other of await openAll()) other.socket.destroy();
    wire.socket.resume();
    // Only bytes that were already in socket buffers arrive.
    await wire.closed;
    expect(wire.size()).toBeLessThan(LARGE_SIZE);
  });

  test("a client that reads its answer slowly receives all of it", async () => {
    const wire = await openWire(strict.url);
    wire.send(`GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`);
    wire.socket.on("data", () => {
      wire.socket.pause();
      setTimeout(() => wire.socket.resume(), 10);
    });
    await until("the whole answer", () => wire.size() > LARGE_SIZE || wire.socket.closed);
    expect(wire.size()).toBeGreaterThan(LARGE_SIZE);
    wire.socket.destroy();
  });

  test("a client that keeps sending after a refusal is disconnected", async () => {
    const wire = await openWire(strict.url, true);
    wire.send(`GET ${target(20_000)} HTTP/1.1\r\n${HOST}Content-Length: 1000000000\r\n\r\n`);
    // A write to a closed connection would end it here before the answer is read.
    const [answer] = await wire.answers(1);
    expectRefusal(answer, 414, "URI_TOO_LONG");
    const drip = setInterval(() => wire.send("a".repeat(1_000)), 20);
    await wire.closed;
    clearInterval(drip);
  });

  /** Opens as many connections as the limit allows, each with one answer. Retries: closed ones may still be counted. */
  async function openAll(): Promise<Wire[]> {
    let wires: Wire[] = [];
    await until("three connections that are free", async () => {
      wires = await Promise.all([1, 2, 3].map(() => openWire(strict.url)));
      for (const wire of wires) wire.send(`${GET}\r\n`);
      const found = await Promise.all(wires.map((wire) => wire.answers(1).catch(() => [])));
      const free = found.every((answers) => answers.length === 1);
      if (!free) for (const wire of wires) wire.socket.destroy();
      return free;
    });
    return wires;
  }
});

describe("the memory of a server", () => {
  let place: Place;
  beforeAll(async () => {
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    await place.import(bundle(1_000_000));
    await place.build();
  });
  afterAll(() => place.close());

  const MB = 1_000_000;
  const rss = (pid: number) => Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)])) * 1_024;

  test("stays below 700 MB while clients send abusive requests", async () => {
    const server = await place.serve();
    const rounds: ((wire: Wire) => void)[] = [
      // Many requests, none of whose answers is read.
      (wire) => {
        wire.socket.pause();
        wire.send(many(100, () => `GET ${LARGE} HTTP/1.1\r\n${HOST}\r\n`));
      },
      (wire) => wire.send(`GET ${target(300_000)} HTTP/1.1\r\n${HOST}\r\n`),
      (wire) => wire.send(`${GET}${many(50_000, () => "A: b\r\n")}\r\n`),
      (wire) => wire.send(`POST ${LIST} HTTP/1.1\r\n${HOST}Content-Length: 900000000\r\n\r\n${"a".repeat(300_000)}`),
      (wire) => wire.send(`${GET}Transfer-Encoding: chunked\r\n\r\n${"10000\r\n".padEnd(65_543, "a")}\r\n`.repeat(5)),
      (wire) => wire.send("\x00".repeat(300_000)),
      (wire) => wire.send(GET),
    ];
    const abuse = async () => {
      for (const round of rounds) {
        const wires = await Promise.all(Array.from({ length: 30 }, () => openWire(server.url)));
        for (const wire of wires) round(wire);
        await stillServes(server.url);
        for (const wire of wires) wire.socket.destroy();
        await Promise.all(wires.map((wire) => wire.closed));
      }
    };
    for (let again = 0; again < 3; again++) {
      await abuse();
      // All answers that the first of these rounds requests would take 3 GB.
      expect(rss(server.pid)).toBeLessThan(700 * MB);
    }
    expect((await server.stop()).code).toBe(0);
  });
});
