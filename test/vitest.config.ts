/** How the tests run: see the "test" script of package.json. */

import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { closingLine } from "./support/closing-line.ts";
import { folderInMemory } from "./support/memory.ts";

// Who names a folder gets that one: on a real disk the tests pass as well.
process.env.TMPDIR ??= folderInMemory() ?? tmpdir();

export default defineConfig({
  test: {
    root: fileURLToPath(new URL("..", import.meta.url)),
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global.ts",
    pool: "forks",
    // What a file imports is there for the next one: nothing in it keeps what a test did.
    isolate: false,
    // As the program does in tests: see START in support/cli.ts.
    execArgv: ["--liftoff-only"],
    // Of three files at a time one waits for a server, a limit or a disk: two cores have enough to do.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", closingLine()],
  },
});
