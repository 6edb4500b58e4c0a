/** The tests' stand-in for S3 as a process of its own, so that its processor time is not that of its clients. */
import { hash } from "node:crypto";
import { startS3 } from "../../support/s3.ts";
import type { Asked, Held, Stored } from "./store.ts";

/** As many as S3 itself lists at once. */
const PAGE = 1_000;
/** Requests that are remembered at most: a benchmark of workers makes a million. */
const MOST_REQUESTS = 10_000;

const s3 = await startS3({ page: PAGE });
const watched = process.argv[2] === undefined ? null : new RegExp(process.argv[2]);
let forgotten = 0;
s3.trouble = ({ method, key }) => {
  if (method === "PUT" && watched?.test(key))
    process.send?.({ key, at: performance.timeOrigin + performance.now() } satisfies Stored);
  if (s3.requests.length >= MOST_REQUESTS) forget();
  return undefined;
};
process.send?.(s3.env);

process.on("message", (asked: Asked) => {
  if (asked === "empty") s3.objects.clear();
  forget();
  process.send?.(look(asked === "count"));
  forgotten = 0;
});
process.once("disconnect", () => process.exit(0));

function forget(): void {
  forgotten += s3.requests.length;
  s3.requests.length = 0;
}

function look(briefly: boolean): Held {
  const { user, system } = process.cpuUsage();
  const held = briefly ? [] : [...s3.objects];
  const objects = held.map(([key, { bytes }]) => [key, hash("sha256", bytes, "base64")] as const);
  return { objects, requests: forgotten, cpu: (user + system) / 1e6 };
}
