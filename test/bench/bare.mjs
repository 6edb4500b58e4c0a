/**
 * What node:http costs by itself: answers that were recorded before it starts, looked up and written from memory, and
 * nothing else. Plain JavaScript, so that its memory is that of Node.js alone.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { deserialize } from "node:v8";

const answers = deserialize(readFileSync(process.argv[2]));

const server = createServer((incoming, outgoing) => {
  const { headers } = incoming;
  const known = answers.get(headers["x-app-key"] + incoming.url);
  const { status, fields, body } = headers["if-none-match"] === known.etag ? known.unchanged : known.full;
  outgoing.writeHead(status, fields);
  outgoing.end(body);
});
// An idle connection must not be closed in the middle of a benchmark.
server.keepAliveTimeout = 65_000;
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }));
});
process.once("SIGTERM", () => process.exit(0));
