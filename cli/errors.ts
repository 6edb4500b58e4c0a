/** Says what went wrong and what to do, in one sentence for a person. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../shared/config.ts";
import {
  DatabaseFault,
  EmbeddedFault,
  isConflict,
  isLoginRefused,
  ServerEndedFault,
} from "../shared/database/errors.ts";
import { LockedError, LockLostError } from "../shared/lock.ts";
import { printable } from "../shared/text.ts";
import { BUILD_LOCK } from "../shared/tree.ts";

/** Its text may be shown on a terminal, whatever the error quotes. */
export function describeFailure(error: unknown): string {
  return printable(writeSentence(error));
}

function writeSentence(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join("\n");
  if (error instanceof LockedError) return describeLock(error);
  if (error instanceof LockLostError) return describeLostLock(error);
  if (error instanceof ServerEndedFault) return HOST_ENDED;
  if (isFileLimit(error)) return describeFileLimit();
  if (error instanceof EmbeddedFault) return error.message;
  if (error instanceof DatabaseFault) {
    if (isConflict(error)) {
      return `A concurrent transaction conflicted with this one (${error.message}). Nothing was changed. Run the command again.`;
    }
    if (isDiskFull(error)) return describeFullDisk(error);
    if (isCertificateError(error.code ?? "")) return describeCertificate(error);
    const { syscall, path, code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    if (syscall === "open")
      return `The file ${path} cannot be read (${code}). Check sslrootcert, sslcert and sslkey in --database-url (DATABASE_URL).`;
    if (/no PostgreSQL user name/.test(error.message)) return NO_USER;
    if (isLoginRefused(error)) {
      return `The database refused the login (${error.message}). Check the user, the password and the name of the database in --database-url (DATABASE_URL).`;
    }
    return `The database did not answer (${error.message}). Check that it is running and that --database-url (DATABASE_URL) is correct.`;
  }
  if (!(error instanceof Error)) return String(error);
  return KNOWN_ERRORS[findCode(error)]?.(error) ?? error.message;
}

/** As in many containers. The client then takes the user from PGUSER, or from the name of the user of the system. */
const NO_USER =
  "The address of the database names no user, and neither does the environment. Write postgres://user@host/name in --database-url (DATABASE_URL), or set PGUSER.";

function findCode(error: unknown): string {
  if (!(error instanceof Error)) return "";
  // Errors that rmSync throws have no code since Node.js 24, and those of a thread that cannot start have another one.
  if (/EMFILE|too many open files/i.test(error.message)) return "EMFILE";
  return (error as NodeJS.ErrnoException).code ?? "";
}

/** Whether the database could not be reached because this process may open too few files. */
export function isFileLimit(error: unknown): boolean {
  return error instanceof DatabaseFault && findCode(error.cause) === "EMFILE";
}

function describeFileLimit(): string {
  return "This process has reached its limit of open files. Raise the limit (ulimit -n) and run the command again.";
}

function describeLock({ path, message, holder }: LockedError): string {
  if (path.endsWith("database.lock"))
    return `The embedded database is in use by ${holder}. Wait for that process to end, stop it, or use PostgreSQL (--database-url).`;
  if (path.endsWith(BUILD_LOCK))
    return `Another build (${holder}) is writing this tree. Wait for it to end, then build again.`;
  return `${message}. Wait for it to end, then run the command again.`;
}

function describeLostLock({ path, message }: LockLostError): string {
  if (path.endsWith(BUILD_LOCK))
    return "Another build has taken over this tree because this one was suspended for too long, or somebody has removed the tree. Build again to complete what is left.";
  return `${message}. Run the command again.`;
}

const HOST_ENDED =
  "The process that shared the embedded database has ended. Run the command again: it then opens the database itself.";

/** Whether an error code of Node.js means that it rejected a TLS certificate. */
export function isCertificateError(code: string): boolean {
  return /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code);
}

function describeCertificate({ message }: DatabaseFault): string {
  const remedies =
    "specify the certificate file of its authority (sslrootcert=…, or NODE_EXTRA_CA_CERTS), or set sslmode=no-verify";
  return `The certificate of the database is not trusted (${message}). Check the host in --database-url (DATABASE_URL), ${remedies}.`;
}

/** disk_full */
const DISK_FULL = "53100";

/** A new connection for whose cache the server finds no room is refused without the code. */
function isDiskFull({ code, message }: DatabaseFault): boolean {
  return code === DISK_FULL || message === "could not write init file";
}

function describeFullDisk({ message }: Error): string {
  return `The disk of the database is full (${message}). Existing data is intact. Free some space there and run the command again.`;
}

// A port besides the first of a server: the messages of KNOWN_ERRORS would name the options of that one.

type PortAddress = { readonly host: string; readonly port: number };

/** `name` is that of the options of the port. */
export async function explainPort<T>(
  name: "admin" | "media",
  at: PortAddress,
  open: (at: PortAddress) => Promise<T>,
): Promise<T> {
  return open(at).catch((error: unknown) => {
    const why = describePort(name, at, findCode(error));
    throw why === null ? error : new Error(why);
  });
}

function describePort(name: string, { host, port }: PortAddress, code: string): string | null {
  switch (code) {
    case "EADDRINUSE":
      return `The ${name} port ${port} is in use. Choose another with --${name}-port, or stop the process that listens on it.`;
    case "EACCES":
      return `No permission to listen on the ${name} port ${port}. Choose another with --${name}-port.`;
    case "EADDRNOTAVAIL":
      return `This machine does not have the address ${host}. Give one of its own addresses with --${name}-host.`;
    case "ENOTFOUND":
      return `The host name ${host} has no address. Give a name or address of this machine with --${name}-host.`;
    default:
      return null;
  }
}

const FOLDERS = "--out, --data-dir, --write, the bundle of an import, or the target of a deploy";

/** Something is in the place of a folder. */
function describeInTheWay({ path = "" }: NodeJS.ErrnoException): string {
  return existsSync(path)
    ? `${path} is a file, not a folder. Specify another folder (${FOLDERS}).`
    : `${path} cannot be created, because its path contains a broken symbolic link. Mount the target of the link, or specify another folder (${FOLDERS}).`;
}

/** Some file systems say so of a folder of theirs, such as /proc. */
function describeUncreatable({ path = "", message }: NodeJS.ErrnoException): string {
  if (!existsSync(dirname(path))) return message;
  return `${path} cannot be created: nobody can create folders there. Specify another folder (${FOLDERS}).`;
}

/** Without a path, as when a folder is read like a file, the message cannot say more than Node.js does. */
function describeFolder({ path, dest, message }: NodeJS.ErrnoException & { readonly dest?: string }): string {
  const place = dest ?? path;
  if (place === undefined) return message;
  return `${place} is a folder, but must be a file. Remove it, or specify another folder (${FOLDERS}).`;
}

/** Keyed by error code of the operating system, or SQLSTATE of PostgreSQL. */
const KNOWN_ERRORS: Readonly<Record<string, ((error: NodeJS.ErrnoException) => string) | undefined>> = {
  // read_only_sql_transaction
  "25006": ({ message }) =>
    `The database is read-only (${message}). Use its primary server (--database-url, or DATABASE_URL).`,
  // insufficient_privilege
  "42501": ({ message }) =>
    /row-level security/.test(message)
      ? `Row-level security hides rows from the role of --database-url (DATABASE_URL), which would count as deleted (${message}). Give the role BYPASSRLS, or disable row-level security on that table.`
      : `The role of --database-url (DATABASE_URL) lacks a privilege: ${message}. Use the role that ran \`precast migrate\`, or grant this role the privilege.`,
  [DISK_FULL]: describeFullDisk,
  EADDRINUSE: (error) => {
    const { port } = error as { readonly port?: number };
    return `The port${port === undefined ? "" : ` ${port}`} is in use. Choose another with --port, or stop the process that listens on it.`;
  },
  ENOTFOUND: ({ message }) =>
    `The host name cannot be resolved (${message}). Specify an address of this machine with --host.`,
  EADDRNOTAVAIL: ({ message }) =>
    `This machine does not have that address (${message}). Specify one of its own with --host.`,
  EACCES: ({ path }) =>
    path === undefined
      ? "Permission denied for the port. Choose another with --port."
      : `Permission denied for ${path}. Grant this user access to it, or specify another folder (${FOLDERS}).`,
  EPERM: ({ path, message }) =>
    path === undefined
      ? message
      : `The operating system refuses to change ${path}. Specify another folder (${FOLDERS}).`,
  EROFS: ({ path }) => `${path} is on a read-only file system. Specify another folder (${FOLDERS}).`,
  EDQUOT: () =>
    "The disk quota of this user is exhausted. Existing data is intact. Free some space and run the command again.",
  ENOSPC: () =>
    "The disk is full. Existing data is intact. Free some space, or inodes (df -i), and run the command again.",
  EFBIG: () =>
    "This process may not write files of that size. Existing data is intact. Raise the limit (ulimit -f) and run the command again.",
  EMFILE: describeFileLimit,
  ELOOP: ({ path }) =>
    `${path} cannot be found, because its path contains a symbolic link that leads back to itself. Correct the link, or specify another folder (${FOLDERS}).`,
  ENAMETOOLONG: ({ path }) =>
    `${path} is too long for the file system, as a whole or in one of its names. Specify a folder with a shorter path (${FOLDERS}).`,
  EISDIR: describeFolder,
  EEXIST: describeInTheWay,
  ENOENT: (error) => (error.syscall === "mkdir" ? describeUncreatable(error) : error.message),
  ENOTDIR: ({ path }) => `Part of the path ${path} is a file, not a folder. Specify another folder (${FOLDERS}).`,
};
