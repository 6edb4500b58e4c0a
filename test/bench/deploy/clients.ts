/** The programs that copy a tree to a bucket: `precast deploy` and, where it is installed, rclone. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { MAIN } from "../precast.ts";
import type { Store } from "./store.ts";

export type Client = {
  readonly name: string;
  readonly version: string;
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
};

type Copy = { readonly out: string; readonly transfers: number; readonly folder: string };

const BUCKET = "content";
/** Below which the files are in the bucket. */
export const PREFIX = "api";

export function precastClient({ env }: Store, { out, transfers }: Copy): Client {
  const flags = ["--out", out, "--path-style", "--concurrency", String(transfers), "--quiet", "--json"];
  const command = [process.execPath, MAIN, "deploy", `s3://${BUCKET}/${PREFIX}`, ...flags] as const;
  return { name: "precast deploy", version: `Node.js ${process.versions.node}`, command: [...command], env };
}

/** Null where it is not installed. */
export function rcloneClient({ env }: Store, { out, transfers, folder }: Copy): Client | null {
  // Prefers Debian's program to others of the same name.
  const program = existsSync("/usr/bin/rclone") ? "/usr/bin/rclone" : "rclone";
  const version = versionOf(program);
  if (version === null) return null;
  const flags = ["--transfers", String(transfers), "--exclude", "/.precast/**"];
  const place = { RCLONE_S3_ENDPOINT: env.AWS_ENDPOINT_URL ?? "", RCLONE_S3_REGION: env.AWS_REGION ?? "" };
  const settings = { RCLONE_S3_PROVIDER: "Other", RCLONE_S3_ENV_AUTH: "true", AWS_EC2_METADATA_DISABLED: "true" };
  return {
    ...{ name: "rclone sync", version },
    command: [program, "sync", out, `:s3:${BUCKET}/${PREFIX}`, ...flags],
    env: { ...env, ...place, ...settings, RCLONE_CONFIG: join(folder, "rclone.conf") },
  };
}

function versionOf(program: string): string | null {
  try {
    return execFileSync(program, ["version"], { encoding: "utf8", stdio: "pipe" }).split("\n")[0] ?? "";
  } catch {
    return null;
  }
}
