/**
 * Keeps two deploys of one app to one bucket apart with a lease: an object that names its owner. A deploy creates it if there
 * is none, renews it while it runs, and takes it over when its owner is dead. Its age is by the store's clock, because the
 * clocks of machines may differ.
 */
import { hash, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import * as z from "zod";
import { isAlive, machineId } from "../../shared/lock.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import {
  type Condition,
  DeployLockedError,
  type PutOutcome,
  putPrivateFile,
  type Store,
  type Stored,
  type StoreLock,
} from "./store.ts";

const ownerSchema = once(() =>
  z.object({
    id: z.string(),
    host: z.string(),
    machine: z.string(),
    pid: z.int(),
    since: z.string(),
    /** Seconds without a renewal after which the owner counts as dead. */
    expires_after: z.number(),
  }),
);
type Owner = Readonly<z.output<ReturnType<typeof ownerSchema>>>;

type LeaseOptions = {
  readonly store: Store;
  readonly key: string;
  /** What it is for, in messages. */
  readonly name: string;
  readonly now: () => Date;
  /** Seconds that a request may take. */
  readonly timeout: number;
  /** Whether the store honours conditional writes, if that is known from an earlier lease. */
  readonly isConditional: boolean | null;
};

/** An object at a key, and what it is called. */
type Place = Pick<LeaseOptions, "store" | "key" | "name">;

const EXPIRY = 120;
/** Milliseconds. */
const RELEASE_INTERVAL = 1_000;
const MAX_TRIES = 5;

/**
 * Throws DeployLockedError when another deploy holds the lease. A lease that the store cannot release now, or was perhaps
 * written before a fault, is released as soon as the store can, while this process lives: nobody else could take it over.
 */
export async function takeLease({ now, timeout, isConditional, ...at }: LeaseOptions): Promise<StoreLock> {
  const { store, key, name } = at;
  const expiry = Math.max(EXPIRY, 4 * timeout);
  const machine = { host: hostname(), machine: hash("sha256", machineId(), "hex"), pid: process.pid };
  const owner: Owner = { id: randomUUID(), ...machine, since: now().toISOString(), expires_after: expiry };
  let renewed = now().getTime();
  let lost = false;
  const ended = new AbortController();
  const secondsSinceRenewal = () => (now().getTime() - renewed) / 1_000;
  // A request that begins in time ends before the lease expires, unless the size of its body lengthens its timeout.
  const isExpiring = () => secondsSinceRenewal() + timeout > expiry;
  const check = () => {
    if (lost) throw new DeployLockedError(`Another deploy may have taken over ${name}.`);
    if (isExpiring()) throw notRenewed(name, secondsSinceRenewal());
  };
  const remove = async () => {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      // The store does not seem to answer: the retries would take minutes, and the lease expires by itself.
      if (isExpiring()) return;
      const stored = await store.get(key);
      const holder = stored === null ? null : readOwner(stored);
      if (stored !== null && holder === null) throw new Error(`${key} in ${store.name} cannot be read.`);
      if (holder?.id !== owner.id || (await removeOnce(at, check))) return;
    }
    throw new Error(`${key} in ${store.name} cannot be removed.`);
  };
  /** A process that ends does not wait for it. */
  const removeLater = () => {
    setTimeout(() => void remove().catch(removeLater), RELEASE_INTERVAL).unref();
  };
  const removeIfItFails = async <T>(act: Promise<T>): Promise<T> => {
    return act.catch((error: unknown) => {
      removeLater();
      throw error;
    });
  };

  let etag = await removeIfItFails(acquire(at, owner, isConditional === true));
  const conditional = isConditional ?? (await removeIfItFails(honoursConditions(at, owner)));
  const renew = async () => {
    const start = now().getTime();
    const condition = conditional ? ({ kind: "etag", etag } as const) : undefined;
    const outcome = await writeOwner(at, owner, condition, ended.signal);
    if (outcome.kind === "put") etag = outcome.etag;
    else {
      // An earlier renewal whose response was lost may have changed the ETag.
      const now = await store.get(key);
      if (now === null || readOwner(now)?.id !== owner.id) lost = true;
      else etag = now.etag;
    }
    if (!lost) renewed = start;
  };
  const timer = setInterval(() => void renew().catch(() => {}), (expiry / 6) * 1_000);
  timer.unref();

  const release = async () => {
    clearInterval(timer);
    ended.abort();
    await removeIfItFails(remove());
  };
  return { check, conditional, release };
}

/** Writes the lease and returns its ETag. Throws DeployLockedError when another deploy holds it. */
async function acquire(at: Place, owner: Owner, isConditional: boolean): Promise<string> {
  // Mostly there is no lease. A store that might ignore the condition has to be asked first.
  const first = isConditional ? await writeOwner(at, owner, { kind: "absent" }) : null;
  if (first?.kind === "put") return first.etag;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await at.store.get(at.key);
    if (stored !== null && readOwner(stored)?.id !== owner.id && !isDead(stored)) throw heldBy(at.name, stored);
    const condition = stored === null ? { kind: "absent" as const } : { kind: "etag" as const, etag: stored.etag };
    const outcome = await writeOwner(at, owner, condition);
    if (outcome.kind === "put") return outcome.etag;
    if (outcome.kind === "unsupported") return acquireUnconditionally(at, owner);
  }
  throw new DeployLockedError(`Other deploys keep taking the lock of ${at.name}. Try again later.`);
}

async function acquireUnconditionally(at: Place, owner: Owner): Promise<string> {
  await writeOwner(at, owner, undefined);
  const stored = await at.store.get(at.key);
  if (stored === null || readOwner(stored)?.id !== owner.id) throw heldBy(at.name, stored);
  return stored.etag;
}

/** Tries two writes that must be refused: on condition that there is no lease, and with an ETag that is not its own. */
async function honoursConditions(at: Place, owner: Owner): Promise<boolean> {
  const absent = await writeOwner(at, owner, { kind: "absent" });
  const other = await writeOwner(at, owner, { kind: "etag", etag: '"00000000000000000000000000000000"' });
  return absent.kind === "unmet" && other.kind === "unmet";
}

/**
 * By a single request. False when it failed for a while: it may have succeeded, and another deploy have taken the lease, which
 * the next request would remove.
 */
async function removeOnce({ store, key }: Place, check: () => void): Promise<boolean> {
  const repeated = new Error("repeated");
  let tries = 0;
  const checkOnce = () => {
    if (tries++ > 0) throw repeated;
    check();
  };
  try {
    await store.remove(key, checkOnce);
    return true;
  } catch (error) {
    if (error !== repeated) throw error;
    return false;
  }
}

function writeOwner(
  { store, key }: Place,
  owner: Owner,
  condition: Condition | undefined,
  signal?: AbortSignal,
): Promise<PutOutcome> {
  return putPrivateFile(store, key, `${JSON.stringify(owner)}\n`, { condition, signal });
}

function readOwner({ bytes }: Stored): Owner | null {
  return parseJson(bytes.toString("utf8"), ownerSchema());
}

/** Whether the owner is dead. A lease that cannot be read expires like any other. */
function isDead(stored: Stored): boolean {
  const owner = readOwner(stored);
  if (owner?.machine === hash("sha256", machineId(), "hex") && !isAlive(owner.pid)) return true;
  return stored.age !== null && stored.age >= (owner?.expires_after ?? EXPIRY);
}

function notRenewed(name: string, seconds: number): DeployLockedError {
  const what = `The lock of ${name} was not renewed for ${Math.floor(seconds)} seconds`;
  const why = "the store did not answer, or this machine was suspended";
  return new DeployLockedError(`${what}: ${why}. Another deploy may have taken over.`);
}

function heldBy(name: string, stored: Stored | null): DeployLockedError {
  const owner = stored === null ? null : readOwner(stored);
  const who = owner === null ? "Another deploy" : `Another deploy (${owner.host}, process ${owner.pid})`;
  const left = Math.max(1, Math.ceil((owner?.expires_after ?? EXPIRY) - (stored?.age ?? 0)));
  const message = `${who} holds the lock of ${name}. Wait for it to end, then deploy again.`;
  return new DeployLockedError(`${message} If it has died, its lock expires in ${left} seconds.`);
}
