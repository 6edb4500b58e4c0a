/** How `npm run compile` bundles the program into `dist`: what starts there, what goes into it, what lies beside it. */
import { chmodSync, cpSync } from "node:fs";
import { defineConfig } from "rolldown";

const PROGRAM = { main: "./cli/main.ts" };
/** These share no file with the program, so that a thread loads only what it runs. */
const THREADS = { writer: "./cli/builder/writer-thread.ts", embedded: "./shared/database/embedded/worker.ts" };
/** Folders of texts that are read at run time: from a file of `dist/cli` as from their own sources at `../<name>/`. */
const TEXTS = { "shared/schema": "dist/schema", "cli/edge": "dist/edge" };
/**
 * The libraries that every command loads: finding a file costs more than running it. All others stay in node_modules,
 * where whoever installs Precast can replace a version that has a flaw.
 */
const BUNDLED = /^(commander|picocolors|valibot)(\/|$)/;

function bundle(input, folder, output) {
  const names = `${folder}/[name].js`;
  return {
    input,
    platform: "node",
    transform: { target: "node20.19" },
    external: (id) => /^[\w@]/.test(id) && !BUNDLED.test(id),
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

function layTextsBeside() {
  for (const [from, to] of Object.entries(TEXTS))
    cpSync(from, to, { recursive: true, filter: (path) => !/\.(ts|md)$/.test(path) });
  chmodSync("dist/cli/main.js", 0o755);
}

export default defineConfig([
  {
    ...bundle(PROGRAM, "cli", {
      cleanDir: true,
      // What four commands share is in one file for all of them, instead of one for each set of commands that share it.
      codeSplitting: { groups: [{ name: "common", test: /\/(cli|server|shared)\/.*\.ts$/, minShareCount: 4 }] },
    }),
    plugins: [{ name: "texts", writeBundle: layTextsBeside }],
  },
  bundle(THREADS, "threads"),
]);
