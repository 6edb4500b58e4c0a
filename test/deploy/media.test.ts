/** `precast deploy --media` uploads the media that imports have brought, each once, to where their addresses lead. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openPlace, type Place, readTree, SHOP, shop, shopWithout } from "../support/cli.ts";
import { differencesOf, filesOf } from "../support/deployed.ts";
import { type S3, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";

const TARGET = "s3://content/api";
const MEDIA = `${SHOP}/cms/media`;
/** With characters that signatures, addresses and XML treat differently. */
const ODD = "ä (1)!'*&+ c.png";

let store: Store;
let place: Place;
let s3: S3;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.build();
});
beforeEach(async () => {
  s3 = await startS3({ bucket: "content" });
  rmSync(join(place.folder, ".precast"), { recursive: true, force: true });
  lay({ [ODD]: "a picture", "a.svg": "<svg/>" });
  return () => s3.close();
});
afterAll(async () => {
  await place.close();
  await store.close();
});

/** Lays media of an app where an import would. */
function lay(files: Record<string, string>, key = SHOP): void {
  const folder = join(place.folder, ".precast/media", key, "cms/media");
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}

type Report = { readonly written: number; readonly media?: object };
const deploy = (line = "--media") => place.json<Report>(`deploy ${TARGET} ${line}`, s3.env);
const stored = (name: string) => s3.objects.get(`api/${MEDIA}/${name}`);
/** The names of the media that were sent since the last call, sorted. */
const sent = () =>
  s3.requests
    .splice(0)
    .filter(({ method, key }) => method === "PUT" && key.includes("/cms/"))
    .map(({ key }) => key.slice(`api/${MEDIA}/`.length))
    .sort();

describe("deploy --media to a bucket", () => {
  test("uploads media with their types and a long lifetime, before the files that lead to them", async () => {
    expect((await deploy()).media).toEqual({ written: 2, unchanged: 0, bytes: 15 });
    expect(stored(ODD)).toMatchObject({
      bytes: Buffer.from("a picture"),
      headers: { "content-type": "image/png", "cache-control": "public, max-age=604800" },
    });
    expect(stored("a.svg")?.headers["content-type"]).toBe("image/svg+xml");
    const puts = s3.requests.filter(({ method }) => method === "PUT").map(({ key }) => key);
    expect(puts.findLastIndex((key) => key.includes("/cms/"))).toBeLessThan(
      puts.findIndex((key) => key.includes("/v1/")),
    );
  });

  test("sends each once: what is there, unchanged, not again, unless with --force", async () => {
    await deploy();
    expect(sent()).toEqual([ODD, "a.svg"].sort());
    expect((await deploy()).media).toEqual({ written: 0, unchanged: 2, bytes: 0 });
    expect(sent()).toEqual([]);
    lay({ "a.svg": "<svg></svg>", "b.png": "new" });
    expect((await deploy()).media).toEqual({ written: 2, unchanged: 1, bytes: 14 });
    expect(sent()).toEqual(["a.svg", "b.png"]);
    expect(stored("a.svg")?.bytes.toString()).toBe("<svg></svg>");
    await deploy("--media --force");
    expect(sent()).toHaveLength(3);
  });

  test("deletes no media, and deploys of the tree leave them alone, also those that replace and delete its files", async () => {
    await deploy();
    lay({ "c.png": "c" });
    rmSync(join(place.folder, ".precast/media", MEDIA, "a.svg"));
    expect((await deploy()).media).toEqual({ written: 1, unchanged: 1, bytes: 1 });
    await place.import(shopWithout(1));
    await place.build("changed");
    const report = await place.json<Report>(`deploy ${TARGET} --force --out changed`, s3.env);
    expect(report.media).toBeUndefined();
    expect(["a.svg", "c.png", ODD].map((name) => stored(name) !== undefined)).toEqual([true, true, true]);
    const tree = [...filesOf(s3)].filter(([path]) => !path.includes("/cms/media/"));
    expect(differencesOf(new Map(tree), join(place.folder, "changed"))).toEqual([]);
    await place.import(shop());
    await place.build();
  });

  test("lists in a dry run what it would upload, and uploads nothing", async () => {
    await deploy();
    lay({ "b.png": "new" });
    const before = new Map(s3.objects);
    const { code, stdout } = await place.call(`deploy ${TARGET} --media --dry-run`, s3.env);
    expect([code, s3.objects]).toEqual([0, before]);
    expect(stdout.split("\n").filter((line) => line.startsWith("upload"))).toEqual([`upload ${MEDIA}/b.png`]);
    expect(stdout).toContain("would upload 1 file of media, 2 unchanged, 3 B");
  });

  test("goes on where an interrupted one has ended, and says that the tree was not changed", async () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`${index + 1000}.png`, `${index}`]));
    lay(many);
    s3.trouble = ({ method, key }) => (method === "PUT" && key.endsWith("/1550.png") ? { status: 403 } : undefined);
    const failed = await place.call(`deploy ${TARGET} --media --retries 0`, s3.env);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining("The tree was not changed.")]);
    expect([...s3.objects.keys()].filter((key) => key.includes("/v1/"))).toEqual([]);
    s3.trouble = () => undefined;
    const { media } = await deploy();
    expect(media).toMatchObject({ unchanged: 500, written: 102 });
    expect(stored("1550.png")?.bytes.toString()).toBe("550");
  });

  test("refuses a deploy for which there are no media, and changes nothing then", async () => {
    rmSync(join(place.folder, ".precast"), { recursive: true });
    lay({ "a.png": "of another app" }, "other");
    const { code, stderr } = await place.call(`deploy ${TARGET} --media`, s3.env);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^There are no media of Shop in \.precast\/media\. Nothing was changed\. [^\n]*\n$/),
    ]);
    expect([...s3.objects.keys()].filter((key) => !key.endsWith("/lease.json"))).toEqual([]);
  });
});

test("deploy --media to a folder lays media beside the tree, where a web server finds both", async () => {
  const folder = join(place.folder, "web");
  const target = pathToFileURL(folder).href;
  for (const media of [
    { written: 2, unchanged: 0, bytes: 15 },
    { written: 0, unchanged: 2, bytes: 0 },
  ])
    expect((await place.json<Report>(`deploy ${target} --media`)).media).toEqual(media);
  expect(readFileSync(join(folder, MEDIA, ODD), "utf8")).toBe("a picture");
  await place.json<Report>(`deploy ${target} --force`);
  expect([...readTree(folder).keys()].filter((path) => path.startsWith(SHOP))).toEqual([
    `${MEDIA}/a.svg`,
    `${MEDIA}/${ODD}`,
  ]);
});
