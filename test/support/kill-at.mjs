/**
 * Loaded into a process before its program: counts the calls that change files, in each thread for itself, and ends the
 * process with SIGKILL at the one that PRECAST_TEST_KILL names (`main:17`, `worker:3`). A write that it ends at has
 * written one half, or nothing of a few bytes. PRECAST_TEST_COUNT names a file that is given a line a call, with the path that it changes.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

const MUTATING =
  /^(write|writev|writeFile|appendFile|rename|rm|rmdir|mkdir|mkdtemp|unlink|link|symlink|copyFile|cp|truncate|ftruncate|fsync|fdatasync|utimes|futimes|open)(Sync)?$/;
const { PRECAST_TEST_KILL = "", PRECAST_TEST_COUNT } = process.env;
const thread = isMainThread ? "main" : "worker";
const append = fs.appendFileSync;
let calls = 0;

function watch(object) {
  for (const [name, original] of Object.entries(object)) {
    if (typeof original !== "function" || !MUTATING.test(name)) continue;
    object[name] = function (...given) {
      if (!changes(name, given)) return original.apply(this, given);
      calls += 1;
      if (PRECAST_TEST_COUNT !== undefined) note(name, given);
      if (`${thread}:${calls}` === PRECAST_TEST_KILL) die(name, given);
      return original.apply(this, given);
    };
  }
}

/** A handle is like a descriptor that is named first. */
function watchHandles(prototype) {
  for (const name of ["write", "writeFile", "appendFile", "truncate", "sync", "datasync"]) {
    const original = prototype[name];
    prototype[name] = function (...given) {
      const call = [name === "write" ? "write" : `f${name}`, [name === "sync" ? pathOf(this.fd) : this.fd, ...given]];
      calls += 1;
      if (PRECAST_TEST_COUNT !== undefined) note(...call);
      if (`${thread}:${calls}` === PRECAST_TEST_KILL) die(...call);
      return original.apply(this, given);
    };
  }
}

let inside = false;

/** On Linux, which knows. */
function pathOf(descriptor) {
  try {
    return fs.readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return descriptor;
  }
}

function note(name, given) {
  inside = true;
  append(PRECAST_TEST_COUNT, `${thread} ${name} ${name.startsWith("rename") ? given[1] : given[0]}\n`);
  inside = false;
}

/** Opening a file for reading changes nothing; what is printed is no file. */
function changes(name, given) {
  if (inside || ((name === "write" || name === "writeSync") && given[0] <= 2)) return false;
  return !name.startsWith("open") || /[wa+]/.test(String(given[1] ?? "r")) || Number(given[1]) % 4 > 0;
}

/** What is this short is written by one call of the system, or not at all. */
const SHORT = 64;

function optionsOf(name, options) {
  return name.startsWith("append") ? { flag: "a" } : typeof options === "function" ? undefined : options;
}

function die(name, given) {
  inside = true;
  const [target, content, options] = given;
  if (typeof content === "string" || content instanceof Uint8Array) {
    const part = content.slice(0, content.length < SHORT ? 0 : content.length / 2);
    if (name.startsWith("writeFile") || name.startsWith("appendFile"))
      fs.writeFileSync(target, part, optionsOf(name, options));
    if (/^write(Sync)?$/.test(name)) fs.writeSync(target, part);
  }
  process.kill(process.pid, "SIGKILL");
  // The signal takes a moment in which nothing more may be done.
  for (;;);
}

/** What the handles of open files inherit from. */
async function handles() {
  const handle = await fs.promises.open(fileURLToPath(import.meta.url));
  await handle.close();
  return Object.getPrototypeOf(handle);
}

if (PRECAST_TEST_KILL !== "" || PRECAST_TEST_COUNT !== undefined) {
  watchHandles(await handles());
  watch(fs);
  watch(fs.promises);
  syncBuiltinESMExports();
}
