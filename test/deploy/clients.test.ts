/** Deploys beside independent S3 clients, Debian's aws and rclone: they show that the stand-in behaves like S3. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPlace, type Place, readTree, SHOP_FOLDER, shop, shopWithout } from "../support/cli.ts";
import { deployInProcess, differencesOf, filesOf } from "../support/deployed.ts";
import { type S3, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

/** Prefers Debian's program to others of the same name on the `PATH`. */
const programOf = (name: string) => (existsSync(`/usr/bin/${name}`) ? `/usr/bin/${name}` : name);

let store: Store;
let place: Place;
let s3: S3;
const inPlace = (name: string) => join(place.folder, name);

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.build();
  s3 = await startS3();
});
afterAll(async () => {
  await s3.close();
  await place.close();
  await store.close();
});

async function client(name: string, args: readonly string[]): Promise<string> {
  const rclone = { RCLONE_S3_PROVIDER: "Other", RCLONE_S3_ENV_AUTH: "true", RCLONE_S3_ENDPOINT: s3.url };
  const own = { RCLONE_S3_REGION: s3.env.AWS_REGION ?? "", RCLONE_CONFIG: inPlace("rclone.conf") };
  const env = { ...s3.env, ...rclone, ...own, AWS_EC2_METADATA_DISABLED: "true" };
  const { code, stdout, stderr } = await place.spawn(programOf(name), args, env);
  if (code !== 0) throw new Error(`${name} ${args.join(" ")}: exit ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

const aws = (...args: string[]) => client("aws", ["--endpoint-url", s3.url, ...args]);
const rclone = (...args: string[]) => client("rclone", args);

/** Differences between a downloaded copy and the tree, without `.precast/`. */
function differences(folder: string): string[] {
  return differencesOf(readTree(inPlace(folder)), inPlace("out"));
}

test("rclone lists a tree that aws uploaded, a deploy updates it, and both clients download the new tree", async () => {
  await aws("s3", "sync", "out", "s3://content/api", "--exclude", ".precast/*");
  await aws("s3", "cp", "out/.precast/changes.json", `s3://content/api/${SHOP_FOLDER}/posts/page/99.json`);
  const listed = (await rclone("lsf", "--recursive", "--files-only", ":s3:content/api")).trim().split("\n").sort();
  expect(listed).toEqual([...readTree(inPlace("out")).keys(), `${SHOP_FOLDER}/posts/page/99.json`].sort());

  await place.import(shopWithout(1));
  await place.build();
  const gone = listed.filter((path) => !existsSync(inPlace(`out/${path}`)));
  expect((await deployInProcess(s3, inPlace("out"))).deleted).toBe(gone.length);
  expect(differencesOf(filesOf(s3), inPlace("out"))).toEqual([]);
  for (const folder of ["by-aws", "by-rclone"]) mkdirSync(inPlace(folder));
  await aws("s3", "sync", "s3://content/api", "by-aws");
  await rclone("copy", ":s3:content/api", "by-rclone");
  expect([differences("by-aws"), differences("by-rclone")]).toEqual([[], []]);
});

test("aws reports the content type, cache control and metadata with which the deploy uploaded a file", async () => {
  const head = await aws("s3api", "head-object", "--bucket", "content", "--key", `api/${SHOP_FOLDER}/_schemas.json`);
  expect(JSON.parse(head)).toMatchObject({
    ContentType: "application/json; charset=utf-8",
    CacheControl: "max-age=60",
    Metadata: { "cache-tag": "Shop,Shop/_schemas", "cdn-cache-control": "max-age=3600" },
  });
});

test("a forced deploy restores a file that aws deleted and one that it replaced", async () => {
  await aws("s3", "rm", `s3://content/api/${SHOP_FOLDER}/_schemas.json`);
  await aws("s3", "cp", "out/.precast/changes.json", `s3://content/api/${SHOP_FOLDER}/posts/page/1.json`);
  await deployInProcess(s3, inPlace("out"), { force: true });
  expect(differencesOf(filesOf(s3), inPlace("out"))).toEqual([]);
});
