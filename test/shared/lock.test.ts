/** Locks: which count as held, also by processes on other machines or in other containers, and how they are lost. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { findHolder, LockedError, LockLostError, machineId, readStart, takeLock } from "../../shared/lock.ts";
import { unlessLacking } from "../support/root.ts";
import { until } from "../support/until.ts";

let folder: string;
let lock: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  lock = join(folder, "some.lock");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const age = (seconds: number) => {
  const then = new Date(Date.now() - seconds * 1_000);
  utimesSync(lock, then, then);
};
const renewedAgo = () => Date.now() - statSync(lock).mtimeMs;

test("a lock from elsewhere that was just renewed is held, also when a process here has the same pid", () => {
  for (const pid of [process.pid, 1]) {
    writeFileSync(lock, `${pid} - elsewhere\n`);
    const refused = `process ${pid} on another machine or in another container`;
    expect(() => takeLock(lock)).toThrow(LockedError);
    expect(() => takeLock(lock)).toThrow(refused);
    expect(findHolder(lock)).toBe(refused);
  }
  expect(readdirSync(folder)).toEqual(["some.lock"]);
});

test("a lock from elsewhere that was not renewed for 11 seconds can be taken", () => {
  writeFileSync(lock, "1 - elsewhere\n");
  age(11);
  expect(findHolder(lock)).toBe(null);
  let deaths = 0;
  const { release } = takeLock(lock, () => deaths++);
  expect(deaths).toBe(1);
  expect(findHolder(lock)).toBe(`process ${process.pid}`);
  release();
  expect(readdirSync(folder)).toEqual([]);
});

test.skipIf(process.platform !== "linux")(
  "a lock can be taken when its holder was killed and the parent, as in many containers, never asks how it ended",
  async () => {
    // The shell starts a child, and becomes a program that does not know of it.
    const parent = spawn("sh", ["-c", "sleep 1000 & echo $!; exec sleep 1000"]);
    onTestFinished(() => void parent.kill());
    const [printed] = await once(parent.stdout, "data");
    const pid = Number(printed);
    const became = () => readFileSync(`/proc/${parent.pid}/comm`, "utf8");
    await until("the shell to be another program", async () => became() === "sleep\n");
    writeFileSync(lock, `${pid} - ${machineId()}\n`);
    expect(findHolder(lock)).toBe(`process ${pid}`);
    process.kill(pid, "SIGKILL");
    await until("the lock to be free", async () => findHolder(lock) === null);
    expect(process.kill(pid, 0)).toBe(true);
    takeLock(lock).release();
  },
);

test.skipIf(process.platform !== "linux")(
  "a lock of a live local process is held, whatever the clock says, unless an earlier process with its pid took it",
  () => {
    const other = spawn("sleep", ["1000"]);
    onTestFinished(() => void other.kill());
    const start = readStart(other.pid ?? 0);
    for (const [started, seconds, holder] of [
      [start, 0, `process ${other.pid}`],
      [start, 3_600, `process ${other.pid}`],
      [start, -3_600, `process ${other.pid}`],
      ["-", 3_600, `process ${other.pid}`],
      [readStart(1), 0, null],
    ] as const) {
      writeFileSync(lock, `${other.pid} ${started} ${machineId()}\n`);
      age(seconds);
      expect(findHolder(lock)).toBe(holder);
    }
    takeLock(lock).release();
  },
);

test.skipIf(process.platform !== "linux")("a lock that cannot be created fails with the same message each time", () => {
  const nowhere = "/proc/self/some.lock";
  const words = () => {
    try {
      takeLock(nowhere);
    } catch (error) {
      return [(error as Error).message, (error as NodeJS.ErrnoException).path];
    }
  };
  expect(words()).toEqual([expect.stringContaining("ENOENT"), nowhere]);
  expect(words()).toEqual(words());
});

test("an empty lock file, as a power failure leaves it, can be taken over", () => {
  writeFileSync(lock, "");
  age(11);
  takeLock(lock).release();
  expect(readdirSync(folder)).toEqual([]);
});

test("a holder renews its lock, but not one that another process has taken", async () => {
  const { release, isHeld, check } = takeLock(lock);
  const own = readFileSync(lock, "utf8");
  age(60);
  await until("a renewal", () => renewedAgo() < 30_000);
  expect(readFileSync(lock, "utf8")).toBe(own);
  expect(isHeld()).toBe(true);
  expect(check).not.toThrow();
  writeFileSync(lock, "1 - elsewhere\n");
  expect(isHeld()).toBe(false);
  expect(check).toThrow(LockLostError);
  age(60);
  const other = takeLock(join(folder, "other.lock"));
  utimesSync(join(folder, "other.lock"), 0, 0);
  await until("a renewal of another lock", () => statSync(join(folder, "other.lock")).mtimeMs > 0);
  expect(renewedAgo()).toBeGreaterThan(30_000);
  other.release();
  release();
  expect(readFileSync(lock, "utf8")).toBe("1 - elsewhere\n");
});

test("a lock is lost when its file is gone, but not when its file cannot be read", () => {
  const { isHeld, release } = takeLock(lock);
  rmSync(lock);
  expect(isHeld()).toBe(false);
  mkdirSync(lock);
  expect(isHeld()).toBe(true);
  release();
});

test("a lock file that is a symbolic link to nothing is taken over", () => {
  symlinkSync(join(folder, "nowhere"), lock);
  expect(findHolder(lock)).toBe(null);
  takeLock(lock).release();
  expect(readdirSync(folder)).toEqual([]);
});

test("a lock file that is still empty is held for ten seconds: its holder may be about to write to it", () => {
  writeFileSync(lock, "");
  expect(() => takeLock(lock)).toThrow("is held by a process that has just taken it");
  expect(findHolder(lock)).toBe("a process that has just taken it");
  expect(readFileSync(lock, "utf8")).toBe("");
});

test("on a file system without hard links, only one takes a lock, and a dead holder's can be taken over", () => {
  writeFileSync(lock, "1 - elsewhere\n");
  age(11);
  const script = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    fs.linkSync = () => {
      throw Object.assign(new Error("operation not supported"), { code: "ENOTSUP" });
    };
    syncBuiltinESMExports();
    const { takeLock } = await import(${JSON.stringify(new URL("../../shared/lock.ts", import.meta.url))});
    const { isHeld, release } = takeLock("some.lock");
    try {
      takeLock("some.lock");
    } catch ({ message }) {
      process.stdout.write(message.replace(process.pid, "N"));
    }
    process.stdout.write(" " + isHeld());
    release();`;
  expect(runScript(script, folder).stdout).toBe("some.lock is held by process N true");
  expect(readdirSync(folder)).toEqual([]);
});

/** Root can read every file, so the script becomes another user, which only root can do. */
const NO_OTHERS = process.getuid?.() === 0 ? null : "only root can be another user";

test.skipIf(NO_OTHERS !== null)(
  unlessLacking(
    NO_OTHERS,
    "a lock file of another user that cannot be read is not taken, and does not count as abandoned",
  ),
  () => {
    const module = fileURLToPath(new URL("../../shared/lock.ts", import.meta.url));
    const { isHeld, release } = takeLock(lock);
    onTestFinished(release);
    chmodSync(lock, 0o600);
    chmodSync(folder, 0o777);
    const script = `
      import { findHolder, takeLock } from ${JSON.stringify(module)};
      process.seteuid(65534);
      for (const look of [takeLock, findHolder]) {
        try {
          process.stdout.write(String(look("some.lock")));
        } catch ({ code, path }) {
          process.stdout.write(code + " " + path + "\\n");
        }
      }`;
    // Runs inside the folder, because a parent folder may be accessible to root alone.
    const { stdout } = runScript(script, folder);
    expect(stdout).toBe("EACCES some.lock\n".repeat(2));
    expect(isHeld()).toBe(true);
  },
);

test.skipIf(NO_OTHERS !== null)(
  unlessLacking(
    NO_OTHERS,
    "a lock of another machine counts as held in a read-only folder, because its age cannot be determined",
  ),
  () => {
    writeFileSync(lock, "1 - elsewhere\n");
    age(3_600);
    expect(findHolder(lock)).toBe(null);
    chmodSync(folder, 0o755);
    const script = `
      import { findHolder } from ${JSON.stringify(fileURLToPath(new URL("../../shared/lock.ts", import.meta.url)))};
      process.seteuid(65534);
      process.stdout.write(String(findHolder("some.lock")));`;
    expect(runScript(script, folder).stdout).toBe("process 1 on another machine or in another container");
  },
);

function runScript(script: string, cwd?: string) {
  const flags = ["--import", import.meta.resolve("tsx"), "--input-type=module", "-e", script];
  return spawnSync(process.execPath, flags, { cwd, encoding: "utf8" });
}

const NO_LIMITS = spawnSync("prlimit", ["--version"]).error?.message ?? null;

test.skipIf(NO_LIMITS !== null)(
  unlessLacking(NO_LIMITS, "a holder whose disk is full for a while does not leak file descriptors"),
  () => {
    const module = fileURLToPath(new URL("../../shared/lock.ts", import.meta.url));
    const script = `
      import { spawnSync } from "node:child_process";
      import { readdirSync, readlinkSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      import { takeLock } from ${JSON.stringify(module)};
      const limit = (bytes) => spawnSync("prlimit", ["--pid", process.pid, "--fsize=" + bytes + ":"]);
      const whatOf = (fd) => {
        try {
          return readlinkSync("/proc/self/fd/" + fd);
        } catch {
          return "one that was open to look";
        }
      };
      const { release } = takeLock(${JSON.stringify(lock)});
      limit(0);
      await sleep(7_000);
      const open = readdirSync("/proc/self/fd").filter((fd) => whatOf(fd).startsWith(${JSON.stringify(lock)}));
      limit("unlimited");
      release();
      process.stdout.write(String(open.length));`;
    // Three renewals have failed by then.
    expect(runScript(script).stdout).toBe("0");
  },
);
