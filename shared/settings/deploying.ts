/** Settings of a deploy: the store, limits, credentials, and the CDN to purge. */
import * as v from "valibot";
import {
  flag,
  method,
  optionalAddress,
  optionalBase,
  optionalName,
  optionalText,
  orElse,
  orNull,
  secret,
  setting,
  webAddress,
  whole,
} from "./setting.ts";

const CDNS: readonly string[] = ["cloudflare", "fastly", "cloudfront"];

export const DEPLOYING = {
  concurrency: setting(
    "--concurrency <number>",
    "PRECAST_CONCURRENCY",
    "number of concurrent requests to the store, 16 by default",
    orElse(whole(1, 256), "16"),
  ),
  maxDelete: setting(
    "--max-delete <number>",
    "PRECAST_MAX_DELETE",
    "refuse to delete more files than this, 256 by default",
    orElse(whole(0, 1_000_000_000), "256"),
  ),
  force: setting(
    "--force",
    "PRECAST_FORCE",
    "upload every file, even unchanged ones, and delete every surplus file, ignoring --max-delete",
    flag,
  ),
  retries: setting(
    "--retries <number>",
    "PRECAST_RETRIES",
    "retries of a request after a transient fault, 7 by default",
    orElse(whole(0, 100), "7"),
  ),
  timeout: setting(
    "--timeout <seconds>",
    "PRECAST_TIMEOUT",
    "seconds that a request may take, 30 by default; large bodies may take longer",
    orElse(whole(1, 3_600), "30"),
  ),
  endpoint: setting(
    "--endpoint <url>",
    "AWS_ENDPOINT_URL",
    "address of an S3-compatible store; without it, Amazon S3 in the region",
    optionalAddress,
  ),
  region: {
    ...setting(
      "--region <name>",
      "AWS_REGION",
      "region of the bucket, us-east-1 by default",
      optionalName("eu-central-1"),
    ),
    fallbackEnv: "AWS_DEFAULT_REGION",
  },
  pathStyle: setting(
    "--path-style",
    "PRECAST_PATH_STYLE",
    "put the bucket name in the path (https://host/bucket/key) instead of the host name; always done if the host is an IP address",
    flag,
  ),
  accessKeyId: secret("AWS_ACCESS_KEY_ID", "ID of the access key for the store"),
  secretAccessKey: secret("AWS_SECRET_ACCESS_KEY", "secret of that access key"),
  sessionToken: secret("AWS_SESSION_TOKEN", "session token of temporary credentials"),
  purge: setting(
    "--purge <how>",
    "PRECAST_PURGE",
    "purge what has changed from a CDN: cloudflare, fastly, cloudfront, or an address with {path}, {url} and {key} that is called for each changed request",
    orNull(
      v.pipe(
        v.string(),
        v.check(
          (how) => CDNS.includes(how) || v.is(webAddress, how),
          "must be cloudflare, fastly, cloudfront or an address without a user name or password in it",
        ),
      ),
    ),
  ),
  purgeMethod: setting(
    "--purge-method <method>",
    "PRECAST_PURGE_METHOD",
    "HTTP method for calling the address of --purge, POST by default",
    orElse(method, "POST"),
  ),
  purgeHeader: secret("PRECAST_PURGE_HEADER", "header to send to the address of --purge, as `Name: value`"),
  purgeEndpoint: setting(
    "--purge-endpoint <url>",
    "PRECAST_PURGE_ENDPOINT",
    "address of the CDN's API, if it is not the standard one",
    optionalBase,
  ),
  cloudflareZone: setting(
    "--cloudflare-zone <id>",
    "CLOUDFLARE_ZONE_ID",
    "zone that --purge cloudflare purges",
    optionalName("023e105f4ecef8ad9ca31a8372d0c353"),
  ),
  cloudflareToken: secret("CLOUDFLARE_API_TOKEN", "API token that may purge the zone's cache"),
  fastlyService: setting(
    "--fastly-service <id>",
    "FASTLY_SERVICE_ID",
    "service that --purge fastly purges",
    optionalName("SU1Z0isxPaozGVKXdv0eY"),
  ),
  fastlyToken: secret("FASTLY_API_TOKEN", "API token that may purge the service by keys"),
  cloudfrontDistribution: setting(
    "--cloudfront-distribution <id>",
    "CLOUDFRONT_DISTRIBUTION_ID",
    "distribution that --purge cloudfront purges",
    optionalName("EDFDVBD6EXAMPLE"),
  ),
  waitVisible: setting(
    "--wait-visible <url>",
    "PRECAST_WAIT_VISIBLE",
    "wait until this address serves what was deployed: the base address of the API, or an address with {path} or {file}",
    optionalAddress,
  ),
  waitLimit: setting(
    "--wait-limit <seconds>",
    "PRECAST_WAIT_LIMIT",
    "seconds that --wait-visible waits, 120 by default",
    orElse(whole(1, 86_400), "120"),
  ),
  state: setting(
    "--state <target>",
    "PRECAST_STATE",
    "where the tree was deployed to, s3://bucket/prefix or file:///folder; without a local tree, the deployed one is fetched first",
    optionalText,
  ),
} as const;
