/** Settings of workers: where they deploy to, and how much at once. */
import * as z from "zod";
import { setting } from "./common.ts";
import { integer, optional } from "./zod.ts";

export const WORKING = {
  target: setting("--target <target>", "where the apps are deployed to: s3://bucket/prefix or file:///folder", () =>
    optional(z.string()),
  ),
  appsPerProcess: setting(
    "--apps-per-process <number>",
    "apps that this process publishes at the same time, 4 by default",
    () => integer(1, 64).default(4),
  ),
  largeApps: setting(
    "--large-apps <number>",
    "apps with thousands of changes that this process publishes at the same time, beside the others, 1 by default; 0 leaves them to other processes",
    () => integer(0, 16).default(1),
  ),
  finish: setting(
    "--finish <seconds>",
    "seconds that publications may take once the process is told to stop, 60 by default; what is not done then, another process does",
    () => integer(0, 86_400).default(60),
  ),
} as const;
