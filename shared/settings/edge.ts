/** What the configuration of an edge is made of. */
import { z } from "zod";
import { setting } from "./setting.ts";

const NO_ORIGIN = "must be an address without a path, such as https://api.example.com";
/** Requests go there with the path that they came with, so it has none of its own. */
const originAddress = z
  .string()
  .regex(/^https?:\/\/[a-zA-Z0-9.[\]:-]+\/?$/, NO_ORIGIN)
  .refine((url) => URL.canParse(url), NO_ORIGIN);

export const EDGE = {
  origin: setting(
    "--origin <url>",
    "PRECAST_ORIGIN",
    "where `precast serve` answers what is no file; on the same machine http://127.0.0.1:3000 by default",
    originAddress.optional().transform((url) => url ?? null),
  ),
  treeUrl: setting(
    "--tree-url <url>",
    "PRECAST_TREE_URL",
    "where a static host serves the files of the tree, for targets that have no files of their own",
    z
      .string()
      .regex(/^https?:\/\/[^/\s?#]+[^\s?#"]*$/, "must be an address such as https://tree.example.com")
      .refine((url) => URL.canParse(url), "must be an address such as https://tree.example.com")
      .optional()
      .transform((url) => url ?? null),
  ),
  write: setting(
    "--write <dir>",
    "PRECAST_WRITE",
    "write the files into this folder instead of printing them",
    z
      .string()
      .optional()
      .transform((folder) => folder ?? null),
  ),
} as const;
