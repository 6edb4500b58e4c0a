/** Settings of `precast plan`: what is planned, by whose prices, and how much it may cost. */
import * as z from "zod";
import { setting } from "./common.ts";
import { matching, optional, several } from "./zod.ts";

export const STORE_NAMES = ["s3", "r2", "gcs", "b2"] as const;
export type StoreName = (typeof STORE_NAMES)[number];

const A_LIMIT = "must be limits such as files=20000,usd=5: of files, bytes, requests and usd, each a number";

export const PLANNING = {
  model: setting("--model <file>", "plan a changed content type: a file as those in content_types/ of a bundle", () =>
    optional(matching(/./s, "must be the name of a file")),
  ),
  prices: setting("--prices <store>", `price requests and storage as this store does: ${STORE_NAMES.join(", ")}`, () =>
    optional(z.enum(STORE_NAMES, `must be one of ${STORE_NAMES.join(", ")}`)),
  ),
  planBudget: setting(
    "--budget <limits>",
    "exit with 2 above one of these limits: files=20000,bytes=50000000,requests=25000,usd=5",
    () => optional(several(/[\s,]+/, matching(/^(files|bytes|requests|usd)=\d+(\.\d+)?$/, A_LIMIT))),
    "PRECAST_PLAN_BUDGET",
  ),
} as const;
