/** How `npm run compile` bundles the program into `dist`: what starts there, what goes into it, what lies beside it. */
import { chmodSync, cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { defineConfig } from "rolldown";

const PROGRAM = { main: "./cli/main.ts" };
/** What apps import runs in browsers and workers as well: each one is a whole. `development` is for bundlers that know it. */
const CLIENTS = ["client", "development"];
/** Properties that no app sees, and of which no name is looked up: short, they keep the client below 5 kB. */
const INNER =
  /^(parameters|filters|route|likeFields|operator|field|shape|apply|descending|column|kind|path|query|isAnsweredBy|forget)$/;
/** These share no file with the program, so that a thread loads only what it runs. */
const THREADS = { writer: "./cli/builder/writer-thread.ts", embedded: "./shared/database/embedded/worker.ts" };
/** Folders of texts that are read at run time: from a file of `dist/cli` as from their own sources at `../<name>/`. */
const TEXTS = { "shared/schema": "dist/schema", "cli/edge": "dist/edge", "cli/studio/page": "dist/studio" };
/** The studio's page, for browsers: it loads nothing but its own folder. A report has the other one in its file. */
const PAGE = { page: "./cli/studio/page/main.tsx" };
const REPORT = { report: "./cli/studio/page/report.tsx" };
/** Shows the OpenAPI document in the studio: a file that is served as it is. */
const VIEWER = "rapidoc-min.js";
/** listhen is bundled without what it has for development: certificates, WebSockets, clipboard, tunnels, emoji. */
const UNUSED = ["node-forge", "crossws/adapters/node", "tinyclip", "untun"];
const ALIASES = { ...Object.fromEntries(UNUSED.map((name) => [name, false])), consola$: "consola/basic" };
/** The dependencies stay in node_modules, where a version that has a flaw can be replaced. All else is bundled. */
const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const LEFT = Object.keys(dependencies);

function bundle(input, folder, output) {
  const names = `${folder}/[name].js`;
  return {
    input,
    platform: "node",
    transform: { target: "node20.19" },
    resolve: { alias: ALIASES },
    external: (id) => LEFT.some((name) => id === name || id.startsWith(`${name}/`)),
    output: {
      dir: "dist",
      entryFileNames: names,
      chunkFileNames: names,
      sourcemap: true,
      sourcemapExcludeSources: true,
      // V8 reads comments at each start, and twice as many bytes of a file in which one letter is not ASCII. Names stay,
      // for stack traces.
      comments: { legal: true, jsdoc: false },
      charset: "ascii",
      ...output,
    },
  };
}

function bundleClient(name) {
  return {
    input: `./shared/client/${name}.ts`,
    platform: "browser",
    transform: { target: "es2022" },
    // Constants that are made from others would stay, used or not.
    treeshake: { moduleSideEffects: false },
    output: { file: `dist/client/${name}.js`, minify: { mangleProps: { include: INNER } }, comments: false },
    plugins: [{ name: "types", writeBundle: layTypesBeside }],
  };
}

function layTypesBeside() {
  cpSync("shared/client/types.ts", "dist/client/client.d.ts");
  writeFileSync("dist/client/development.d.ts", 'export * from "./client.js";\n');
}

function bundlePage(input) {
  const page = bundle(input, "studio", { minify: true, sourcemap: false });
  return { ...page, platform: "browser", transform: { target: "es2023" } };
}

function layTextsBeside(_options, files) {
  for (const [from, to] of Object.entries(TEXTS))
    cpSync(from, to, { recursive: true, filter: (path) => !/\.(tsx?|md)$|tsconfig/.test(path) });
  keepLicences("dist/LICENSES.txt", files);
  chmodSync("dist/cli/main.js", 0o755);
}

function layViewerBeside(_options, files) {
  for (const name of [VIEWER, `${VIEWER}.LICENSE.txt`])
    cpSync(`node_modules/rapidoc/dist/${name}`, `dist/studio/${name}`);
  keepLicences("dist/studio/LICENSES.txt", files, ["/node_modules/rapidoc"]);
}

function keepLicences(path, files, others = []) {
  const modules = Object.values(files).flatMap(({ moduleIds }) => moduleIds ?? []);
  writeFileSync(path, collectLicences([...modules, ...others]));
}

/** The licences of the libraries that were bundled, which must go with them. */
function collectLicences(modules) {
  const names = modules.flatMap((path) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  const texts = [...new Set(names)].sort().map((name) => {
    const folder = `node_modules/${name}`;
    const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    // Some packages only name their licence.
    const { license, homepage } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const text = file === undefined ? `${license} ${homepage ?? ""}` : readFileSync(`${folder}/${file}`, "utf8");
    return `${name}\n\n${text.trim()}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

export default defineConfig([
  {
    ...bundle(PROGRAM, "cli", {
      cleanDir: true,
      // What eight commands share is in one file for all of them, instead of one for each set of commands that share it.
      // What fewer share stays out of it, because every command loads it. The version is printed without that file.
      codeSplitting: {
        groups: [
          { name: "version", test: /^(?!.*node_modules).*\/package\.json$/, priority: 2 },
          { name: "common", test: /\/(cli\/\w+|shared\/.*)\.ts$/, minShareCount: 8, priority: 1 },
          // Most commands build nothing: they need neither the builder nor its library for folders.
          { name: "builder", test: /\/cli\/builder\//, minShareCount: 2 },
        ],
      },
    }),
    plugins: [{ name: "texts", writeBundle: layTextsBeside }],
  },
  bundle(THREADS, "threads"),
  { ...bundlePage(PAGE), plugins: [{ name: "viewer", writeBundle: layViewerBeside }] },
  bundlePage(REPORT),
  ...CLIENTS.map(bundleClient),
]);
