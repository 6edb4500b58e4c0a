/** Answers of a server, recorded outside of any measured time: others repeat them, and it must give them again. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Ask } from "./mix.ts";
import type { Shot } from "./traffic.ts";

export type Answer = {
  readonly status: number;
  /** Header names and values, alternating, without those that node:http writes by itself. */
  readonly fields: readonly string[];
  readonly body: Buffer;
};

/** The answers to a request: in full, and to the request with its ETag. */
export type Pair = { readonly etag: string; readonly full: Answer; readonly unchanged: Answer };

/** By app and target: see `keyOf`. */
export type Recorded = ReadonlyMap<string, Pair>;

/** How a request is sent to a server. */
export type Manner = {
  readonly target: (ask: Ask) => string;
  readonly headers: Readonly<Record<string, string>>;
};

export const PLAIN: Manner = { target: (ask) => ask.target, headers: {} };
export const GZIP: Manner = { target: (ask) => ask.target, headers: { "Accept-Encoding": "gzip" } };
/** For a server that serves the files of the tree by their paths. */
export const FILES: Manner = { target: (ask) => `/${ask.file}`, headers: {} };

const LANES = 8;

export async function record(url: string, asks: readonly Ask[], manner: Manner): Promise<Recorded> {
  const recorded = new Map<string, Pair>();
  const waiting = [...new Map(asks.map((ask) => [keyOf(ask), ask])).values()];
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const work = async () => {
    for (let ask = waiting.pop(); ask !== undefined; ask = waiting.pop())
      recorded.set(keyOf(ask), await recordPair(url, ask, manner, agent));
  };
  await Promise.all(Array.from({ length: LANES }, work));
  agent.destroy();
  return recorded;
}

/** The key of an answer, here and in bare node:http. */
export function keyOf({ app, target }: Pick<Ask, "app" | "target">): string {
  return app + target;
}

async function recordPair(url: string, ask: Ask, manner: Manner, agent: Agent): Promise<Pair> {
  const full = await get(url, ask, manner, {}, agent);
  const etag = fieldOf(full, "etag") ?? "";
  return { etag, full, unchanged: await get(url, ask, manner, { "If-None-Match": etag }, agent) };
}

function get(url: string, ask: Ask, manner: Manner, more: Record<string, string>, agent: Agent): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const headers = { "X-App-Key": ask.app, ...manner.headers, ...more };
  return new Promise((resolve, reject) => {
    request({ hostname, port, path: manner.target(ask), headers, agent }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
      incoming.on("end", () => {
        resolve({
          status: incoming.statusCode ?? 0,
          fields: ownFields(incoming.rawHeaders),
          body: Buffer.concat(chunks),
        });
      });
    })
      .on("error", reject)
      .end();
  });
}

const BY_ITSELF = ["date", "connection", "keep-alive"];

function ownFields(raw: readonly string[]): string[] {
  return raw.filter((_, index) => !BY_ITSELF.includes((raw[index - (index % 2)] ?? "").toLowerCase()));
}

export function fieldOf({ fields }: Answer, name: string): string | undefined {
  return fields.find((_, index) => index % 2 === 1 && fields[index - 1]?.toLowerCase() === name);
}

/** The requests as bytes, each with the expected status and length of its answer. */
export function shotsOf(url: string, asks: readonly Ask[], recorded: Recorded, manner: Manner): Shot[] {
  const { host } = new URL(url);
  return asks.map((ask) => {
    const { etag, full, unchanged } = recorded.get(keyOf(ask)) as Pair;
    const { status, body } = ask.conditional ? unchanged : full;
    const headers = {
      Host: host,
      "X-App-Key": ask.app,
      ...manner.headers,
      ...(ask.conditional ? { "If-None-Match": etag } : {}),
    };
    return { bytes: requestBytes(manner.target(ask), headers), status, length: body.length };
  });
}

export function requestBytes(target: string, headers: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`GET ${target} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
}

/** The requests with a wrong answer: each must be 200 with the bytes of its file, and 304 for its own ETag. */
export function faultsOf(asks: readonly Ask[], recorded: Recorded, out: string): string[] {
  return asks.flatMap((ask) => {
    const { etag, full, unchanged } = recorded.get(keyOf(ask)) as Pair;
    const whole = full.status === 200 && decoded(full).equals(readFileSync(join(out, ask.file)));
    const same = etag !== "" && unchanged.status === 304 && unchanged.body.length === 0;
    return whole && same ? [] : [`${ask.app} ${ask.target}`];
  });
}

function decoded(answer: Answer): Buffer {
  return fieldOf(answer, "content-encoding") === "gzip" ? gunzipSync(answer.body) : answer.body;
}

/** The keys of the answers whose status, ETag or bytes differ from before. */
export function differencesBetween(before: Recorded, after: Recorded): string[] {
  return [...before].flatMap(([key, pair]) => {
    const now = after.get(key);
    const same =
      now !== undefined &&
      now.etag === pair.etag &&
      now.full.status === pair.full.status &&
      now.full.body.equals(pair.full.body) &&
      now.unchanged.status === pair.unchanged.status;
    return same ? [] : [key];
  });
}
