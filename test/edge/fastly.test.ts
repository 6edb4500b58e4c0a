/**
 * `precast edge fastly`: Fastly cannot be run here. Falco, a linter of Fastly's VCL, must find no mistake in the text,
 * and an interpreter reads the rules for file names from it and applies them.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EDGE_KEY } from "../support/edge-apps.ts";
import { type MapRequest, openCore } from "../support/edge-core.ts";
import { type EdgeSite, openEdgeSite } from "../support/edge-site.ts";
import { edgeVectors } from "../support/edge-vectors.ts";

let site: EdgeSite;
let map: MapRequest;
let vcl: string;

beforeAll(async () => {
  site = await openEdgeSite();
  map = openCore(site.apps);
  await site.place.json("edge fastly --tree-url https://tree.example.com/precast/ --write fastly");
  vcl = readFileSync(join(site.place.folder, "fastly/precast.vcl"), "utf8");
});
afterAll(() => site.close());

/** The conditions with the expressions for file names, in the order of the text. */
function rules(): { pattern: RegExp; expression: string }[] {
  const found = vcl.matchAll(/if \(req\.url ~ \{"(.*)"\}\) \{\n\s+set req\.http\.X-Precast-File = (.*);/g);
  return [...found].map(([, pattern = "", expression = ""]) => ({ pattern: new RegExp(pattern), expression }));
}

/** The file that the first matching rule names, relative to the folder of the app. */
function fileOf(target: string): string | null {
  for (const { pattern, expression } of rules()) {
    const groups = pattern.exec(target);
    if (groups !== null) return textOf(expression, groups);
  }
  return null;
}

const HEX = /std\.tolower\(bin\.base64_to_hex\(digest\.base64\(re\.group\.(\d)\)\)\)/;
const HASH = /std\.tolower\(digest\.hash_sha256\(re\.group\.(\d)\)\)/;

/** Evaluates an expression. In VCL, strings beside each other are concatenated. */
function textOf(expression: string, groups: RegExpExecArray): string {
  const group = (number: string) => groups[Number(number)] as string;
  const word = new RegExp(`${HEX.source}|${HASH.source}|re\\.group\\.(\\d)|"([^"]*)"| +`, "g");
  const read = (_: string, hex?: string, hash?: string, plain?: string, text?: string) => {
    if (hex !== undefined) return Buffer.from(group(hex)).toString("hex");
    if (hash !== undefined) return createHash("sha256").update(group(hash)).digest("hex");
    return plain === undefined ? (text ?? "") : group(plain);
  };
  return expression.replace(word, read);
}

/** Whether the linter's package contains its program for this platform. */
const LINTED = ["linux-x64", "darwin-x64", "darwin-arm64"].includes(`${process.platform}-${process.arch}`);

/** Fastly declares the hosts of a service itself. */
const HOSTS = ["origin", "tree"]
  .map((name) => `backend F_precast_${name} { .host = "${name}.example.com"; }\n`)
  .join("");

async function mistakesIn(text: string): Promise<string[]> {
  const { lint } = createRequire(import.meta.url)("falco-js") as { lint: (path: string) => Promise<string> };
  const path = join(site.place.folder, "linted.vcl");
  writeFileSync(path, HOSTS + text);
  const { LintErrors, ParseErrors } = JSON.parse(await lint(path)) as Linted;
  const serious = Object.values(LintErrors)
    .flat()
    .filter(({ Severity }) => Severity !== "Info");
  return [...serious, ...Object.values(ParseErrors).flat()].map(({ Message }) => Message);
}

type Linted = Record<"LintErrors" | "ParseErrors", Record<string, { Severity?: string; Message: string }[]>>;

test.skipIf(!LINTED)("a linter finds no mistake in the VCL, and finds those that the test puts in", async () => {
  expect(await mistakesIn(vcl)).toEqual([]);
  expect(await mistakesIn(vcl.replace("digest.hash_sha256", "digest.hash_sha999"))).not.toEqual([]);
  expect(await mistakesIn(vcl.replace("return(pass);", "return(pass)"))).not.toEqual([]);
});

test("the rules of the VCL name the file that the mapping core names, or none", () => {
  let named = 0;
  for (const { target, keys } of edgeVectors()) {
    const file = fileOf(target);
    if (file === null || keys[0] !== EDGE_KEY || keys.length > 1) continue;
    named += 1;
    expect([target, `/x-53686f70/v1/${file}`]).toEqual([target, map("GET", target, keys)]);
  }
  expect(named).toBeGreaterThan(50);
});

test("the rules of the VCL name every file that is requested in its usual spelling", () => {
  const plain = edgeVectors().filter((vector) => vector.class === "plain");
  expect(plain.filter(({ target }) => fileOf(target) === null)).toEqual([]);
  expect(fileOf("/api/v1/posts?filter[title]=News")).toBe("posts/filter/title/x-4e657773.json");
  expect(fileOf(`/api/v1/posts?filter[title]=${"y".repeat(65)}`)).toMatch(
    /^posts\/filter\/title\/h-[0-9a-f]{64}\.json$/,
  );
});

test("the VCL finds the folder of an app by its key, also where keys differ only in case", () => {
  expect(vcl).toContain('if (req.http.X-App-Key == "Shop") {\n    set req.http.X-Precast-App = "x-53686f70";');
  expect(vcl).toContain('if (req.http.X-App-Key == "shop") {\n    set req.http.X-Precast-App = "s-shop";');
  expect(vcl).toContain('set req.url = {"/precast/"} req.http.X-Precast-App "/v1/" req.http.X-Precast-File;');
});

test("the VCL purges a file by its request, in every coding, and tells caches in front of it of the codings alone", () => {
  expect(vcl).toContain('|| req.method == "FASTLYPURGE") {\n    call precast_app;');
  expect(vcl).toContain('set beresp.http.Vary = "Accept-Encoding";');
  expect(vcl).toContain('set resp.http.Vary = {"X-App-Key, Accept-Encoding"};');
  expect(vcl).toContain("unset resp.http.Age;");
});

test("the VCL has as many closing braces as opening ones, and ends every statement with a semicolon", () => {
  const plain = vcl.replace(/\{".*?"\}/g, "").replace(/^\s*#(?!FASTLY).*$/gm, "");
  expect(plain.split("{").length).toBe(plain.split("}").length);
  expect(
    plain.split("\n").filter((line) => /^\s*(set|unset|call|error|restart|return)\b/.test(line) && !line.endsWith(";")),
  ).toEqual([]);
});
