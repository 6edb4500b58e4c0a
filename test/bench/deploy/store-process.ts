/** The tests' stand-in for S3 as a process of its own, so that its processor time is not that of its clients. */
import { hash } from "node:crypto";
import { startS3 } from "../../support/s3.ts";
import type { Held } from "./store.ts";

/** As many as S3 itself lists at once. */
const PAGE = 1_000;

const s3 = await startS3({ page: PAGE });
process.send?.(s3.env);

process.on("message", (asked: "look" | "empty") => {
  if (asked === "empty") s3.objects.clear();
  process.send?.(look());
  s3.requests.length = 0;
});
process.once("disconnect", () => process.exit(0));

function look(): Held {
  const { user, system } = process.cpuUsage();
  const objects = [...s3.objects].map(([key, { bytes }]) => [key, hash("sha256", bytes, "base64")] as const);
  return { objects, requests: s3.requests.length, cpu: (user + system) / 1e6 };
}
