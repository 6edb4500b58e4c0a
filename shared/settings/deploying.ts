/** Settings of a deploy: the store, limits, credentials, and the CDN to purge. */

import * as z from "zod";
import { type Setting, setting } from "./common.ts";
import { flag, integer, matching, optional } from "./zod.ts";

/** A credential: read from the environment only, and never printed. */
const secret = (env: string, describes: string): Setting<string | null> => ({
  flags: null,
  env: [env],
  describes,
  // Trimmed, because a secret that was read from a file often ends with a line break. Checked here, because the HTTP
  // client's error for an invalid header value would contain the secret.
  schema: () =>
    optional(
      z
        .string()
        .trim()
        .regex(/^[\x20-\x7e]+$/, "must be one line of printable ASCII"),
    ),
});

/** Refuses a user name or password: messages print the address, and neither would be sent. `{…}` is a placeholder. */
function isWebAddress(address: string): boolean {
  const filled = address.replaceAll("{path}", "/").replace(/\{\w+\}/g, "x");
  if (!/^https?:\/\/[^/\s]+\S*$/.test(filled) || !URL.canParse(filled)) return false;
  const { username, password } = new URL(filled);
  return username === "" && password === "";
}

const webAddress = () =>
  z
    .string()
    .refine(
      isWebAddress,
      "must be an address such as https://media.example.com:8443, without a user name or password in it",
    );

/** Paths are appended to it. */
const withoutSlashes = webAddress().transform((address) => address.replace(/\/+$/, ""));

/** A name or id that an outside service has given and that becomes part of URLs. */
const optionalName = (example: string) =>
  optional(matching(/^[\w-]+$/, `must be a name such as ${example}, of letters, digits, '_' and '-'`));

const CDNS: readonly string[] = ["cloudflare", "fastly", "cloudfront"];
const purgeMethod = () =>
  z
    .string()
    .refine(
      (how) => CDNS.includes(how) || isWebAddress(how),
      "must be cloudflare, fastly, cloudfront or an address without a user name or password in it",
    );
const httpMethod = () => matching(/^[A-Z]+$/, "must be an HTTP method in capital letters, such as POST");

export const DEPLOYING = {
  media: setting(
    "--media",
    "also upload the media of the apps, from --data-dir, to <app key>/cms/media/ at the target; those that are there stay, for nothing deletes media",
    () => flag(),
  ),
  concurrency: setting("--concurrency <number>", "number of concurrent requests to the store, 16 by default", () =>
    integer(1, 256).default(16),
  ),
  maxDelete: setting("--max-delete <number>", "refuse to delete more files than this, 256 by default", () =>
    integer(0, 1_000_000_000).default(256),
  ),
  force: setting(
    "--force",
    "upload every file, even unchanged ones, and delete every surplus file, ignoring --max-delete",
    () => flag(),
  ),
  allowOlder: setting("--allow-older", "replace a deployed tree by an older one", () => flag()),
  allowLocalMedia: setting(
    "--allow-local-media",
    "deploy files in which addresses of media lead to the reader's own machine, as http://localhost:3000 does",
    () => flag(),
  ),
  retries: setting("--retries <number>", "retries of a request after a transient fault, 7 by default", () =>
    integer(0, 100).default(7),
  ),
  timeout: setting(
    "--timeout <seconds>",
    "seconds that a request may take, 30 by default; large bodies may take longer",
    () => integer(1, 3_600).default(30),
  ),
  endpoint: setting(
    "--endpoint <url>",
    "address of an S3-compatible store; without it, Amazon S3 in the region",
    () => optional(webAddress()),
    "AWS_ENDPOINT_URL",
  ),
  region: setting(
    "--region <name>",
    "region of the bucket, us-east-1 by default",
    () => optionalName("eu-central-1"),
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
  ),
  pathStyle: setting(
    "--path-style",
    "put the bucket name in the path (https://host/bucket/key) instead of the host name; always done if the host is an IP address",
    () => flag(),
  ),
  accessKeyId: secret("AWS_ACCESS_KEY_ID", "ID of the access key for the store"),
  secretAccessKey: secret("AWS_SECRET_ACCESS_KEY", "secret of that access key"),
  sessionToken: secret("AWS_SESSION_TOKEN", "session token of temporary credentials"),
  purge: setting(
    "--purge <how>",
    "purge what has changed from a CDN: cloudflare, fastly, cloudfront, or an address with {path}, {url} and {key} that is called for each changed request",
    () => optional(purgeMethod()),
  ),
  purgeMethod: setting(
    "--purge-method <method>",
    "HTTP method for calling the address of --purge, POST by default",
    () => httpMethod().default("POST"),
  ),
  purgeHeader: secret("PRECAST_PURGE_HEADER", "header to send to the address of --purge, as `Name: value`"),
  purgeEndpoint: setting("--purge-endpoint <url>", "address of the CDN's API, if it is not the standard one", () =>
    optional(withoutSlashes),
  ),
  cloudflareZone: setting(
    "--cloudflare-zone <id>",
    "zone that --purge cloudflare purges",
    () => optionalName("023e105f4ecef8ad9ca31a8372d0c353"),
    "CLOUDFLARE_ZONE_ID",
  ),
  cloudflareToken: secret("CLOUDFLARE_API_TOKEN", "API token that may purge the zone's cache"),
  fastlyService: setting(
    "--fastly-service <id>",
    "service that --purge fastly purges",
    () => optionalName("SU1Z0isxPaozGVKXdv0eY"),
    "FASTLY_SERVICE_ID",
  ),
  fastlyToken: secret("FASTLY_API_TOKEN", "API token that may purge the service by keys"),
  cloudfrontDistribution: setting(
    "--cloudfront-distribution <id>",
    "distribution that --purge cloudfront purges",
    () => optionalName("EDFDVBD6EXAMPLE"),
    "CLOUDFRONT_DISTRIBUTION_ID",
  ),
  waitVisible: setting(
    "--wait-visible <url>",
    "wait until this address serves what was deployed: the base address of the API, or an address with {path} or {file}",
    () => optional(webAddress()),
  ),
  waitLimit: setting("--wait-limit <seconds>", "seconds that --wait-visible waits, 120 by default", () =>
    integer(1, 86_400).default(120),
  ),
  state: setting(
    "--state <target>",
    "where the tree was deployed to, s3://bucket/prefix or file:///folder; without a local tree, the deployed one is fetched first",
    () => optional(z.string()),
  ),
} as const;
