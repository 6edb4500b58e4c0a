/**
 * The shape of `app.json` and of the files of content types, from which their JSON Schemas are made (schemas/). The
 * message of each rule continues the words "must be"; its description is what an editor shows.
 */
import type { output } from "zod";
import * as z from "zod";
import {
  APP_KEY,
  FIELD_NAME,
  FIELD_TYPES,
  isMediaBaseUrl,
  MAX_FIELDS,
  MAX_PER_PAGE,
  TYPE_SLUG,
} from "../../shared/api/catalog.ts";
import { matching, optional } from "../../shared/settings/zod.ts";
import { formatCount } from "../../shared/text.ts";

export const A_SLUG = "1 to 64 characters from a-z, 0-9, - and _, beginning with a letter or digit";
const A_KEY = "1 to 128 characters from A-Z, a-z, 0-9, - and _, beginning with a letter or digit";
const A_NAME = "1 to 63 characters from a-z, 0-9 and _, beginning with a letter";
const AN_ADDRESS = "an absolute http or https address without ? and #";
const A_LENGTH = `a whole number from 1 to ${MAX_PER_PAGE}`;

const text = z.string("a string");
const flag = z.boolean("true or false");
const names = z.array(z.string("the name of a field"), "an array of field names");
const slug = matching(TYPE_SLUG, A_SLUG);
const $schema = text.optional();

export const APP = z.strictObject(
  {
    $schema,
    key: matching(APP_KEY, A_KEY).describe("What clients send as X-App-Key"),
    name: text.describe("The name of the app, for people"),
    /** Null where the server's setting is used. */
    media_base_url: optional(z.string(AN_ADDRESS).refine(isMediaBaseUrl, AN_ADDRESS)).describe(
      "Where media are: an address that /<key>/cms/media/<file name> is appended to",
    ),
  },
  "an object",
);

export const FIELD = z.strictObject(
  {
    name: matching(FIELD_NAME, A_NAME).describe("The key of its value in entries and answers"),
    type: z.enum(FIELD_TYPES, `one of ${FIELD_TYPES.join(", ")}`).describe("What its values are"),
    label: text.describe("Its name, for people"),
    required: flag.describe("Whether every entry must have a value"),
    searchable: flag.describe("Whether searches look into it: text, rich_text and select may be"),
    multiple: flag.default(false).describe("Whether its value is an array: select, media, relation and text may be"),
    target: optional(slug).describe("The slug of the content type that a relation leads to"),
  },
  "an object",
);

export const TYPE = z.strictObject(
  {
    $schema,
    slug: slug.describe("Its name in addresses: that of the file"),
    name: text.describe("Its name, for people"),
    description: text,
    icon: text,
    position: optional(z.int32("a 32-bit integer")).describe("Its place in the catalog; those without one come last"),
    published: flag.default(true).describe("Whether clients see the type and its entries"),
    default_sort: optional(z.string("the name of a field, with or without a - before it")).describe(
      "Order of lists: a sortable field or a timestamp, with - for descending; newest first by default",
    ),
    per_page: optional(z.int(A_LENGTH).min(1, A_LENGTH).max(MAX_PER_PAGE, A_LENGTH)).describe(
      "Entries on a page of a list, 20 by default",
    ),
    summary_fields: optional(names).describe("What items of a search show; title, slug and category by default"),
    fields: z
      .array(FIELD, "an array of fields")
      .max(MAX_FIELDS, `an array of at most ${formatCount(MAX_FIELDS)} fields`)
      .describe("In the order of answers"),
    filterable_fields: names.describe("Each value costs a file of the tree; not rich_text and json"),
    sortable_fields: names.describe("Not rich_text, json, relations and multiple fields"),
  },
  "an object",
);

export type BundleApp = Omit<output<typeof APP>, "$schema">;
export type BundleType = Omit<output<typeof TYPE>, "$schema">;
