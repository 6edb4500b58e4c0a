/** Messages between host and guest of an embedded database arrive whole, in whatever chunks the socket delivers. */
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { readMessages, type ServerMessage } from "../../shared/database/embedded/share.ts";

/** The messages that are read from these chunks. */
async function heard(chunks: Iterable<Uint8Array>): Promise<ServerMessage[]> {
  const line = new PassThrough();
  const messages: ServerMessage[] = [];
  readMessages<ServerMessage>(line as unknown as Socket, (message) => messages.push(message));
  for (const chunk of chunks) line.write(chunk);
  line.end();
  await new Promise((resolve) => line.once("end", resolve));
  return messages;
}

const row = (id: number, text: string): ServerMessage => ({ rows: [[String(id), text]] });
const bytesOf = (...messages: ServerMessage[]) =>
  Buffer.from(messages.map((message) => `${JSON.stringify(message)}\n`).join(""));

function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

const MESSAGES = [row(1, "a"), row(2, "ä€𝄞\n"), { heard: true } as const, row(3, "")];

test.each([1, 2, 3, 5, 7, 1_000])("several messages arrive in chunks of %s bytes", async (size) => {
  expect(await heard(cut(bytesOf(...MESSAGES), size))).toEqual(MESSAGES);
});

test("a message of 4 MB in small chunks arrives, and so does the next", async () => {
  const large = row(1, "x".repeat(4_000_000));
  const [first, second] = await heard(cut(bytesOf(large, row(2, "next")), 1_000));
  expect(first).toEqual(large);
  expect(second).toEqual(row(2, "next"));
});

test.each(["GET / HTTP/1.1\r", "null", "5", '{"id":1,"rows":['])(
  "a line that is no message ends the connection: %s",
  async (text) => {
    const line = new PassThrough();
    const messages: ServerMessage[] = [];
    readMessages<ServerMessage>(line as unknown as Socket, (message) => messages.push(message));
    line.write(`${JSON.stringify(row(1, "a"))}\n${text}\n${JSON.stringify(row(2, "b"))}\n`);
    await new Promise((resolve) => line.once("close", resolve));
    expect(messages).toEqual([row(1, "a")]);
  },
);
