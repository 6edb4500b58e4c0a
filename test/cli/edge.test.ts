/** `precast edge`: what it prints and writes, for which apps, and which errors it reports. */
import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isUnchanged } from "../../cli/commands/edge.ts";
import { openEmbeddedPlace, openPlace, type Place, readTree, SHOP, shop, smallApp } from "../support/cli.ts";
import { openDisk } from "../support/disk.ts";
import { NO_DISK, unlessLacking } from "../support/root.ts";

const TARGETS = ["nginx", "nginx-njs", "varnish", "caddy", "cloudflare", "cloudfront", "fastly", "netlify", "vercel"];
/** The targets that fetch files from a static host. */
const FETCHING = ["varnish", "fastly"];
const ORIGIN = "--origin http://origin.example.com:8080/";
const TREE = "--tree-url http://tree.example.com/precast/";
const ADDRESSES = `${ORIGIN} ${TREE}`;

type Made = { readonly name: string; readonly text: string; readonly isEdited?: boolean };
type Printed = { readonly target: string; readonly files: readonly Made[] };

let place: Place;
let nowhere: Place;

beforeAll(async () => {
  place = await openEmbeddedPlace();
  nowhere = openPlace();
  await place.import(shop());
  await place.import(smallApp("other", ["Ada"]));
  await place.build();
});
afterAll(async () => {
  await place.close();
  await nowhere.close();
});

/** The first word of `line` is the target. */
function addressesFor(line: string): string {
  const [target = ""] = line.split(" ");
  // At Fastly the origin is a host of the service, and not in the VCL.
  if (target === "fastly") return TREE;
  return FETCHING.includes(target) ? ADDRESSES : ORIGIN;
}
const edge = (line: string, at = place) => at.json<Printed>(`edge ${line} ${addressesFor(line)}`);

describe("the list of targets", () => {
  test("is printed when no target is named, one line each", async () => {
    const { code, stdout } = await nowhere.run("edge");
    expect(code).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength(TARGETS.length);
    for (const target of TARGETS) expect(stdout).toMatch(new RegExp(`^  ${target} +\\w.{10,}$`, "m"));
    const { targets } = await nowhere.json<{ targets: { name: string }[] }>("edge");
    expect(targets.map(({ name }) => name)).toEqual(TARGETS);
  });

  test("is part of the error when the target is unknown", async () => {
    const { code, stdout, stderr } = await place.run("edge apache");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^There is no target 'apache'\. Targets:\n/);
    for (const target of TARGETS) expect(stderr).toContain(`\n  ${target} `);
  });
});

describe.each(TARGETS)("edge %s", (target) => {
  let files: Printed["files"];
  beforeAll(async () => {
    files = (await edge(target)).files;
  });

  test("the configuration contains the apps of the tree, and needs no database", async () => {
    const text = files.map((file) => file.text).join("\n");
    expect(text).toContain("x-53686f70");
    expect(text).toContain("s-other");
    expect(await edge(`${target} --database-url postgres://nobody@127.0.0.1:1/none`)).toEqual({ target, files });
  });

  test("--app names the apps of the configuration, and then no tree is needed", async () => {
    const text = (await edge(`${target} --app Books ${SHOP}`, nowhere)).files.map((file) => file.text).join("\n");
    expect(text).toContain("x-426f6f6b73");
    expect(text).not.toContain("s-other");
  });

  test("the first file begins with numbered steps of installation, and says what to do for a new app", () => {
    expect(files[0]?.text.slice(0, 2_000)).toMatch(/^\W* *1\. \w/m);
    expect(files[0]?.text).toMatch(/When you add an app, generate /);
  });

  test("--write writes the files that are printed without it", async () => {
    const { code, stdout } = await place.run(`edge ${target} ${addressesFor(target)} --write ${target}/made`);
    const paths = files.map(({ name }) => join(target, "made", name));
    expect(code).toBe(0);
    expect(stdout.trimEnd().split("\n").slice(1)).toEqual(paths);
    const written = readTree(join(place.folder, target, "made"));
    expect([...written]).toEqual(files.map(({ name, text }) => [name, text]).sort());
  });

  const hasDigest = ({ name, isEdited }: Made) => isEdited === true && !name.endsWith(".json");
  const pathsIn = (folder: string, some: Printed["files"]) => some.map(({ name }) => join(target, folder, name));

  test("--write replaces the files that it has written for other apps", async () => {
    const line = `edge ${target} ${addressesFor(target)} --write ${target}/again`;
    expect((await place.call(`${line} --app Books`)).code).toBe(0);
    const { code, stdout } = await place.call(`${line} --json`);
    const written = pathsIn("again", files);
    expect([code, JSON.parse(stdout)]).toEqual([0, { target, written, kept: [] }]);
    for (const { name, text } of files) {
      expect(readFileSync(join(place.folder, target, "again", name), "utf8")).toBe(text);
    }
  });

  test("--write leaves files that people have changed as they are, and says so", async () => {
    const home = join(place.folder, target, "changed");
    const line = `edge ${target} ${addressesFor(target)} --write ${target}/changed`;
    expect((await place.call(`${line} --app Books`)).code).toBe(0);
    const edited = files.filter(({ isEdited }) => isEdited);
    const changed = new Map([...readTree(home)].map(([name, text]) => [name, `# mine\n${text}`]));
    for (const { name } of edited) writeFileSync(join(home, name), changed.get(name) ?? "");
    const { code, stdout, stderr } = await place.call(`${line} --json`);
    const kept = pathsIn("changed", edited);
    const written = pathsIn(
      "changed",
      files.filter(({ isEdited }) => !isEdited),
    );
    expect([code, JSON.parse(stdout)]).toEqual([0, { target, written, kept }]);
    for (const path of kept) expect(stderr).toContain(`${path} has changes of yours, or may have, so it was left`);
    for (const { name, text, isEdited } of files) {
      expect(readFileSync(join(home, name), "utf8")).toBe(isEdited ? changed.get(name) : text);
    }
  });

  test("what people may change ends in a digest of the rest", () => {
    for (const file of files) expect([file.name, isUnchanged(file.text)]).toEqual([file.name, hasDigest(file)]);
    for (const { text } of files.filter(hasDigest)) expect(isUnchanged(text.replace("e", "E"))).toBe(false);
  });

  test("--write refuses to replace a file that somebody else wrote, and then writes nothing", async () => {
    for (const { name } of files.filter(({ isEdited }) => !isEdited)) {
      const home = join(target, "foreign", name.replaceAll("/", "-"));
      const path = join(home, name);
      mkdirSync(dirname(join(place.folder, path)), { recursive: true });
      writeFileSync(join(place.folder, path), "mine");
      const { code, stdout, stderr } = await place.call(`edge ${target} ${addressesFor(target)} --write ${home}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toBe(
        `${path} was not generated by \`precast edge\`, so nothing was written. Move that file away, or specify another folder with --write.\n`,
      );
      expect([...readTree(join(place.folder, home))]).toEqual([[name, "mine"]]);
    }
  });

  test("all files are printed, with the origin and the cache headers that are configured", async () => {
    const { code, stdout } = await place.call(`edge ${target} ${addressesFor(target)}`, {
      PRECAST_CACHE_CONTROL: "public, max-age=7",
      PRECAST_CDN_CACHE_CONTROL: "public, max-age=99",
    });
    expect(code).toBe(0);
    if (files.length > 1) for (const { name } of files) expect(stdout).toContain(`==> ${name} <==\n`);
    expect(stdout).toContain("public, max-age=7");
    expect(stdout).toContain("public, max-age=99");
    if (target !== "fastly") expect(stdout).toContain("origin.example.com");
  });
});

test("the files that people change are those that their text or their host tells them to change", async () => {
  const all = await Promise.all(TARGETS.map((target) => edge(target)));
  const edited = all.flatMap(({ target, files }) =>
    files.filter(({ isEdited }) => isEdited).map(({ name }) => `${target} ${name}`),
  );
  expect(edited).toEqual([
    "nginx precast.conf",
    "nginx-njs precast.conf",
    "varnish precast.vcl",
    "caddy Caddyfile",
    "cloudflare wrangler.toml",
    "netlify netlify.toml",
    "vercel vercel.json",
    "vercel .vercelignore",
  ]);
});

test("the order of the apps in --app, and naming one twice, do not change the output", async () => {
  const one = await edge(`nginx --app Books ${SHOP}`, nowhere);
  expect(await edge(`nginx --app ${SHOP} Books Books`, nowhere)).toEqual(one);
});

test("without a tree and without --app, edge fails and says what to do", async () => {
  const { code, stdout, stderr } = await nowhere.call("edge nginx");
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toBe("out holds no tree. Build it (precast build), or name the apps: --app KEY.\n");
});

test("a state file with a key that would break a configuration counts as broken", async () => {
  const folder = join(nowhere.folder, "fetched/.precast");
  mkdirSync(folder, { recursive: true });
  const state = readFileSync(join(place.folder, "out/.precast/s-other.json"), "utf8");
  writeFileSync(join(folder, "s-other.json"), state);
  const known = () => nowhere.call("edge nginx --out fetched");
  expect((await known()).stdout).toContain('"~^other$" "s-other";');
  writeFileSync(join(folder, "s-other.json"), state.replace('"key": "other"', '"key": "other$ x; } server {"'));
  expect((await known()).stderr).toMatch(/^fetched holds no tree\./);
});

test.each(["tree[1]", "tree{x}", "tre*"])(
  "caddy refuses a tree folder whose name Caddy would read as a pattern: %s",
  async (out) => {
    const { code, stdout, stderr } = await nowhere.call(`edge caddy --app ${SHOP} --out ${out}`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^Caddy reads the [[{*] in \/\S+\/tre\S+ as part of a pattern\. Use an --out path without /);
  },
);

test.each(["/srv/out", "..", "../out", "out/../../out"])(
  "netlify and vercel refuse a tree outside of the project that they deploy: %s",
  async (out) => {
    for (const [target, host] of [
      ["netlify", "Netlify"],
      ["vercel", "Vercel"],
    ]) {
      const { code, stdout, stderr } = await nowhere.call(`edge ${target} ${ORIGIN} --app ${SHOP} --out ${out}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toBe(
        `${host} deploys a project, and ${out} does not lie within it. Put the tree into a folder of the project, and name it relative to the project: --out out.\n`,
      );
    }
  },
);

test.each([
  ["out", "out", "out/.precast"],
  ["./site/out/", "site/out", "site/out/.precast"],
  ["..out", "..out", "..out/.precast"],
  [".", ".", ".precast"],
])("netlify and vercel find the tree in %s, and vercel keeps its state folder back", async (out, folder, state) => {
  const [netlify, vercel] = [
    await edge(`netlify --app ${SHOP} --out ${out}`, nowhere),
    await edge(`vercel --app ${SHOP} --out ${out}`, nowhere),
  ];
  expect(netlify.files[1]?.text).toContain(`  publish = "${folder}"\n`);
  expect(JSON.parse(vercel.files[1]?.text ?? "")).toMatchObject({ outputDirectory: folder });
  expect(vercel.files[2]?.text.split("\n")[1]).toBe(state);
});

test.each([
  "http://api.example.com/api",
  "api.example.com",
  "ftp://api.example.com",
  "http://api.example.com?x",
  "http://user@api.example.com",
  "http://api.example.com:99999",
])("an invalid --origin is refused: %s", async (origin) => {
  const { code, stdout, stderr } = await place.call(`edge nginx --origin ${origin}`);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toBe("--origin must be an address without a path, such as https://api.example.com\n");
});

test.each(["cloudflare", "cloudfront", "netlify", "vercel"])(
  "%s requires --origin, because it runs on other machines",
  async (target) => {
    const { code, stdout, stderr } = await place.call(`edge ${target}`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      "This edge runs on other machines. Give the address where it reaches `precast serve`: --origin URL.\n",
    );
  },
);

test("without --origin, nginx and caddy send requests to the default port of serve", async () => {
  expect((await place.call("edge nginx")).stdout).toContain("server 127.0.0.1:3000;");
  expect((await place.call("edge caddy")).stdout).toContain("reverse_proxy http://127.0.0.1:3000");
});

test("nginx and caddy connect to an https origin with TLS and its name, on port 443 by default", async () => {
  const nginx = (await place.call("edge nginx --origin https://api.example.com")).stdout;
  expect(nginx).toContain("server api.example.com:443;");
  expect(nginx).toContain("proxy_pass https://precast_origin;");
  expect(nginx).toContain('proxy_ssl_server_name on;\n    proxy_ssl_name "api.example.com";');
  expect((await place.call("edge nginx")).stdout).not.toContain("proxy_ssl_verify");
  const caddy = (await place.call("edge caddy --origin https://api.example.com")).stdout;
  expect(caddy).toContain("reverse_proxy https://api.example.com {\n\t\t\theader_up Host {upstream_hostport}\n");
});

test.each(["https://192.0.2.1", "https://[2001:db8::1]:8443"])(
  "nginx refuses %s as origin, because it could never verify the certificate",
  async (origin) => {
    const { code, stdout, stderr } = await place.call(`edge nginx --origin ${origin}`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^nginx cannot verify a certificate for the IP address \S+\. Use the host name .*<name>\.\n$/,
    );
  },
);

test.each([
  ["Public, Max-Age=7", 7],
  ["max-age=7, s-maxage=8", 8],
  ["no-store", 0],
])("%s has fastly and varnish keep a file for %i seconds", async (policy, seconds) => {
  for (const target of FETCHING) {
    const { stdout } = await place.call(`edge ${target} ${addressesFor(target)}`, {
      PRECAST_CDN_CACHE_CONTROL: `${policy}, Stale-If-Error=9`,
    });
    expect(stdout).toContain(`set beresp.ttl = ${seconds}s;`);
    expect(stdout).toMatch(/set beresp\.(grace|stale_if_error) = 9s;/);
  }
});

test("nginx refuses values in which it would read a variable", async () => {
  const { code, stdout, stderr } = await place.call("edge nginx", { PRECAST_CACHE_CONTROL: "max-age=$age" });
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^nginx reads the \$ in max-age=\$age as a variable\. Use values without \$ for --out, /);
});

test.each(["nginx", "cloudfront"])("%s refuses --tree-url, because it has the files itself", async (target) => {
  const { code, stdout, stderr } = await place.call(`edge ${target} ${ADDRESSES}`);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^This edge has the files of the tree itself .*Remove --tree-url \(PRECAST_TREE_URL\)\.\n$/);
});

test("fastly refuses --origin, because its origin is a host of the service", async () => {
  const { code, stdout, stderr } = await place.call(`edge fastly ${ADDRESSES}`);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(
    /^This edge reaches .* at a host that you add to its service\. .*remove --origin \(PRECAST_ORIGIN\)\.\n$/,
  );
});

test.each(FETCHING)("%s requires --tree-url, because it has no files itself", async (target) => {
  const { code, stderr } = await place.call(`edge ${target}`);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^\w+ needs the address at which a static host serves the tree: --tree-url URL\.\n$/);
});

test("varnish refuses https addresses of the tree and of the origin", async () => {
  for (const line of [
    "--tree-url https://tree.example.com",
    "--tree-url http://tree.example.com --origin https://api.example.com",
  ]) {
    const { code, stderr } = await place.call(`edge varnish ${line}`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^Varnish does not support TLS .*http:\/\/\.\n$/)]);
  }
});

test("the nginx configuration names the tree folder by its absolute path", async () => {
  await edge("nginx --write nginx-out");
  expect(readFileSync(join(place.folder, "nginx-out/precast.conf"), "utf8")).toContain(
    `root "${join(place.folder, "out")}";`,
  );
});

test.skipIf(NO_DISK !== null)(
  unlessLacking(NO_DISK, "--write on a full disk leaves every file that is there as it is, and none beside it"),
  async () => {
    const disk = openDisk(1);
    onTestFinished(disk.remove);
    const line = `edge cloudfront ${ORIGIN} --write ${disk.folder}/made`;
    expect((await place.call(`${line} --app Books`)).code).toBe(0);
    const before = [...readTree(join(disk.folder, "made"))];
    disk.fill(0);
    const { code, stdout, stderr } = await place.call(line);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^The disk is full\. Existing data is intact\. /);
    expect([...readTree(join(disk.folder, "made"))]).toEqual(before);
    disk.empty();
    expect((await place.call(line)).code).toBe(0);
    expect([...readTree(join(disk.folder, "made"))]).not.toEqual(before);
  },
);

test("--write replaces what a link leads to, and keeps the link", async () => {
  const home = join(place.folder, "linked");
  mkdirSync(join(home, "real"), { recursive: true });
  expect((await place.call(`edge fastly ${TREE} --app Books --write linked/real`)).code).toBe(0);
  symlinkSync("real/precast.vcl", join(home, "precast.vcl"));
  const { files } = await edge("fastly");
  expect((await place.call(`edge fastly ${TREE} --write linked`)).code).toBe(0);
  expect(lstatSync(join(home, "precast.vcl")).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(home, "real/precast.vcl"), "utf8")).toBe(files[0]?.text);
});
