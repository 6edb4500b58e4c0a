/** The sentence that a command prints for a failure that a test can hardly cause. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeFailure } from "../../cli/errors.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { LockLostError } from "../../shared/lock.ts";

const failure = (message: string, more: object = {}) => Object.assign(new Error(message), more);

test.each<[string, unknown, RegExp]>([
  [
    "a deadlock",
    new DatabaseFault("unavailable", "deadlock detected", { code: "40P01" }),
    /^A concurrent transaction conflicted with this one \(deadlock detected\)\. Nothing was changed\. Run the command again\.$/,
  ],
  [
    "a connection for which the disk of the database has no room",
    new DatabaseFault("unavailable", "could not write init file", { code: "XX000" }),
    /^The disk of the database is full \(could not write init file\)\. Existing data is intact\. Free some space there /,
  ],
  [
    "too many open files, of which rmSync gives no code",
    failure("Cannot remove x: Too many open files"),
    /^This process has reached its limit of open files\. Raise the limit \(ulimit -n\)/,
  ],
  [
    "a missing file of certificates",
    new DatabaseFault("unavailable", "", failure("", { code: "ENOENT", syscall: "open", path: "ca.crt" })),
    /^The file ca\.crt cannot be read \(ENOENT\)\. Check sslrootcert/,
  ],
  [
    "a tree that somebody removes while it is built",
    new LockLostError("out/.precast/build.lock"),
    /, or somebody has removed the tree\. Build again /,
  ],
  ["an exhausted quota", failure("", { code: "EDQUOT" }), /^The disk quota of this user is exhausted\. .* Free some /],
  ["a port in use that the error does not name", failure("", { code: "EADDRINUSE" }), /^The port is in use\. Choose/],
  [
    "a port that needs rights",
    failure("", { code: "EACCES" }),
    /^Permission denied for the port\. Choose .* --port\.$/,
  ],
  [
    "a file that the system protects",
    failure("EPERM", { code: "EPERM", path: "/srv/out" }),
    /^The operating system refuses to change \/srv\/out\. Specify another folder/,
  ],
  [
    "a symbolic link to itself",
    failure("ELOOP", { code: "ELOOP", path: "out/.precast" }),
    /^out\/\.precast cannot be found, because .* a symbolic link that leads back to itself\. Correct the link, or specify/,
  ],
  [
    "a name that is too long",
    failure("ENAMETOOLONG", { code: "ENAMETOOLONG", path: "x/y" }),
    /^x\/y is too long for the file system, .*\. Specify a folder with a shorter path/,
  ],
  [
    "a limit of file sizes",
    failure("EFBIG", { code: "EFBIG" }),
    /^This process may not write files of that size\. .* Raise the limit \(ulimit -f\)/,
  ],
  [
    "a folder in the place of a file",
    failure("EISDIR", { code: "EISDIR", path: "x/Caddyfile" }),
    /^x\/Caddyfile is a folder, but must be a file\. Remove it, or specify another folder/,
  ],
  [
    "a folder in the place of a file that is renamed",
    failure("EISDIR", { code: "EISDIR", path: "out/new", dest: "out/old" }),
    /^out\/old is a folder/,
  ],
  ["a folder that is read as a file", failure("EISDIR: read", { code: "EISDIR" }), /^EISDIR: read$/],
  [
    "a refusal of the system without a path",
    failure("operation not permitted", { code: "EPERM" }),
    /^operation not permitted$/,
  ],
  [
    "a file that is gone",
    failure("ENOENT: no such file, open 'x'", { code: "ENOENT", syscall: "open", path: "x" }),
    /^ENOENT: no such file, open 'x'$/,
  ],
  [
    "a folder on a read-only disk",
    failure("EROFS", { code: "EROFS", syscall: "mkdir", path: "disk/out" }),
    /^disk\/out is on a read-only file system\. Specify another folder/,
  ],
  [
    "a folder for which the disk has no inode",
    failure("ENOSPC", { code: "ENOSPC", syscall: "mkdir", path: "disk/out" }),
    /^The disk is full\. .* Free some space, or inodes \(df -i\), and run the command again\.$/,
  ],
  [
    "a folder that could be created by now",
    failure("ENOENT: mkdir", { code: "ENOENT", syscall: "mkdir", path: join(tmpdir(), "a", "b") }),
    /^ENOENT: mkdir$/,
  ],
  [
    "what a terminal would obey",
    failure('"\u001b]0;title\u0007\u009b2J\r"\n\tnext line'),
    /^"\\u001b\]0;title\\u0007\\u009b2J\\u000d"\n\tnext line$/,
  ],
  ["something else that was thrown", "out of luck", /^out of luck$/],
])("describes in a sentence: %s", (_, error, sentence) => {
  expect(describeFailure(error)).toMatch(sentence);
});
