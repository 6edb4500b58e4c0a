/**
 * A reporter that ends a run with the line `N passed, N failed`.
 *
 * Both are numbers of tests; skipped ones count in neither. A failure outside of a test (a file that does not load, a
 * hook, an unhandled rejection) counts as one failed, and so does a run in which no test passed: only a run that
 * succeeds ends in `0 failed`.
 */

import type { Reporter, TestModule } from "vitest/node";

export function closingLine(): Reporter {
  let passed = 0;
  let failed = 0;
  return {
    onInit() {
      // At the exit, because vitest may print more after the tests, such as errors while it shuts down.
      process.once("exit", (code) => {
        const failures = failed === 0 && (code !== 0 || passed === 0) ? 1 : failed;
        if (failures > 0 && code === 0) process.exitCode = 1;
        process.stdout.write(`${passed} passed, ${failures} failed\n`);
      });
    },
    onTestRunEnd(modules, unhandledErrors) {
      passed = count(modules, "passed");
      failed = count(modules, "failed") + modules.reduce((sum, one) => sum + broken(one), unhandledErrors.length);
    },
  };
}

function count(modules: readonly TestModule[], state: "passed" | "failed"): number {
  return modules.reduce((sum, one) => sum + [...one.children.allTests(state)].length, 0);
}

/** How many of a file and its suites have an error outside of their tests. */
function broken(module: TestModule): number {
  const parts = [module, ...module.children.allSuites()];
  return parts.filter((part) => part.errors().length > 0).length;
}
