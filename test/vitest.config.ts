/** How the tests run: see the "test" script of package.json. */

import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { closingLine } from "./support/closing-line.ts";
import { folderInMemory } from "./support/memory.ts";

// A TMPDIR that the caller sets wins over the folder in memory: the tests pass on a disk as well.
process.env.TMPDIR ??= folderInMemory() ?? tmpdir();

export default defineConfig({
  test: {
    root: fileURLToPath(new URL("..", import.meta.url)),
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global.ts",
    pool: "forks",
    // Test files of a worker share the modules that they import: none of these keeps state from one test to the next.
    isolate: false,
    // For the reason that NODE_ARGUMENTS in support/cli.ts gives.
    execArgv: ["--liftoff-only"],
    // One more than the two cores of CI: of three files, one usually waits for a server, a time limit or a disk.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", closingLine()],
  },
});
