#!/usr/bin/env node
/**
 * Entry point of the command line: passes the environment and the clock to the program, which is imported only when
 * Node.js is recent enough, because an older one fails at its imports.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major > 20 || (major === 20 && minor >= 19)) {
  const { runProgram } = await import("./program.ts");
  await runProgram({ env: process.env, now: () => new Date() });
} else {
  process.stderr.write(`Precast needs Node.js 20.19 or newer, and this is ${process.version}.\n`);
  process.exitCode = 1;
}
