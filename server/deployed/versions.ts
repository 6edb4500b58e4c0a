/**
 * Which deploy of an app is in force. The store is asked for a newer one now and then, and what it answers is noted on
 * disk: for all processes of the server, which change over together, and for the next start, when the store may be away.
 */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { segment } from "../../shared/api/address.ts";
import type { App } from "../../shared/api/catalog.ts";
import type { CurrentCheck } from "../../shared/api/respond.ts";
import { openAttempts, shareRunning } from "../../shared/async.ts";
import { exists, writeAtomic } from "../../shared/files.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import { digestBytes, namePrivateFile, nameStateFile, readStateAt } from "../../shared/tree.ts";
import { openCache } from "../cache.ts";
import { openFreshFlight } from "../live/share.ts";
import { openCanonicalApps, openStamps, readStamped, type Watch } from "../tree.ts";
import type { FileCache } from "./cache.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { StoreAwayError, type StoredFile, type WatchedStore } from "./store.ts";

/** An app as one deploy has left it. */
export type Version = {
  readonly appKey: string;
  readonly app: App;
  /** Null when it is kept no longer, and the store is away or has another one. */
  readonly readManifest: () => Promise<Manifest | null>;
  /** Whether lists of a deploy that has not ended were found: then the manifest tells nothing of what lists lead to. */
  readonly isMixed: boolean;
  /** The digests of files that were found in the store and are not those of the manifest, by path. */
  readonly found: Map<string, string>;
  readonly isCurrent: CurrentCheck;
  readonly isCurrentOnDisk: CurrentCheck;
};

export type Versions = {
  /** Null for an app that has no tree. */
  readonly find: (appKey: string) => Promise<Version | null>;
  /** Asks the store now. Never throws. */
  readonly check: (appKey: string) => Promise<void>;
  /** Notes that lists of a deploy that has not ended were found. */
  readonly mix: (version: Version) => Promise<void>;
};

type VersionsOptions = {
  readonly store: WatchedStore;
  readonly cache: FileCache;
  /** Folder of the notes. */
  readonly folder: string;
  /** Milliseconds for which an answer of the store holds. */
  readonly refresh: number;
  /** Whether there is such an app: nobody shall make the server ask the store by inventing keys. */
  readonly hasApp: (appKey: string) => Promise<boolean>;
  readonly report: (news: string) => void;
};

const noteSchema = once(() =>
  z.object({
    /** Of the manifest in the store. */
    etag: z.string().nullable(),
    /** SHA-256 of the manifest, and of the state file of the app. */
    manifest: z.string(),
    state: z.string(),
    isMixed: z.boolean(),
  }),
);
type Note = Readonly<z.output<ReturnType<typeof noteSchema>>>;
type Noted = { readonly note: Note; readonly watch: Watch };

/** What this process knows of an app. Times are of `performance.now()`. */
type Known = {
  readonly appKey: string;
  /** When the last check began. */
  checkedAt: number;
  /** Whether the running check takes longer than requests wait for it. */
  isLate: boolean;
  readonly check: () => Promise<void>;
  readonly open: () => Promise<Version | null>;
  version: Version | null;
};

/** Milliseconds that a request waits for the store to say whether there is a newer deploy. */
const PATIENCE = 1_000;
/** How often a check begins anew because a deploy, or another process, was faster. */
const MAX_TRIES = 3;
/** Bytes of memory for manifests, and for what else is known of apps. */
const MANIFEST_BYTES = 256_000_000;
const KNOWN_BYTES = 64_000_000;
/** Estimated: what is kept of any key, and how much larger the objects of a definition are than its text. */
const KNOWN_OVERHEAD = 1_000;
const OBJECTS = 5;
/** Replaced behind each note. */
const MARKER = "changed";

export function openVersions({ store, cache, folder, refresh, hasApp, report }: VersionsOptions): Versions {
  const stamps = openStamps(join(folder, MARKER));
  const canonical = openCanonicalApps();
  const knownApps = openCache<Known>(KNOWN_BYTES);
  const manifests = openCache<Manifest>(MANIFEST_BYTES);
  const flights = openFreshFlight<void>();
  const attempt = openAttempts((error) => report((error as Error).message));

  function findKnown(appKey: string): Known {
    const before = knownApps.find(appKey);
    if (before !== undefined) return before;
    const known: Known = {
      appKey,
      checkedAt: Number.NEGATIVE_INFINITY,
      isLate: false,
      check: shareRunning(async () => {
        const began = performance.now();
        await check(appKey);
        known.checkedAt = began;
        known.isLate = false;
      }),
      open: shareRunning(async () => {
        const opened = await openVersion(known);
        if (opened !== "incomplete") return opened;
        await check(appKey);
        const again = await openVersion(known);
        return again === "incomplete" ? null : again;
      }),
      version: null,
    };
    knownApps.keep(appKey, known, KNOWN_OVERHEAD);
    return known;
  }

  /** Begins a check in time: while an app is in use, no request has to wait for one. */
  function isFresh(known: Known): boolean {
    const age = performance.now() - known.checkedAt;
    if (age > refresh / 2) void known.check();
    return age <= refresh || known.isLate || store.isAway();
  }

  async function find(appKey: string): Promise<Version | null> {
    const known = findKnown(appKey);
    if (!isFresh(known)) known.isLate = await isSlower(known.check(), PATIENCE);
    if (known.version?.isCurrent() !== true) known.version = await known.open();
    return known.version;
  }

  /** "incomplete" when what the note names is kept no longer. */
  async function openVersion(known: Known): Promise<Version | "incomplete" | null> {
    const { appKey } = known;
    const noted = await readNote(appKey);
    if (noted === null) return null;
    const { note, watch } = noted;
    const bytes = await cache.read(note.state);
    const state = bytes === null ? null : readStateAt(nameStateFile(appKey), bytes.toString());
    if (state === null) return "incomplete";
    knownApps.keep(appKey, known, KNOWN_OVERHEAD + OBJECTS * (bytes?.length ?? 0));
    const openedAt = performance.now();
    const isInForce = () => watch.isCurrent() && !(note.isMixed && performance.now() - openedAt > refresh);
    const version: Version = {
      appKey,
      app: canonical(state.app),
      readManifest: async () => {
        const before = await findManifest(note.manifest);
        if (before !== null) return before;
        await check(appKey);
        return findManifest(note.manifest);
      },
      isMixed: note.isMixed,
      found: new Map(),
      isCurrent: () => knownApps.find(appKey)?.version === version && isInForce() && isFresh(known),
      isCurrentOnDisk: () => watch.isCurrentOnDisk(),
    };
    return version;
  }

  async function findManifest(sha256: string): Promise<Manifest | null> {
    const before = manifests.find(sha256);
    if (before !== undefined) return before;
    const bytes = await cache.read(sha256);
    const manifest = bytes === null ? null : await readManifest(bytes);
    if (manifest !== null) manifests.keep(sha256, manifest, manifest.size);
    return manifest;
  }

  async function check(appKey: string): Promise<void> {
    await attempt(appKey, () =>
      checkStore(appKey).catch((error: unknown) => {
        if (!(error instanceof StoreAwayError)) throw error;
      }),
    );
  }

  async function checkStore(appKey: string): Promise<void> {
    const key = namePrivateFile(segment(appKey), "manifest.json");
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const noted = await readNote(appKey);
      if (noted === null && !(await hasApp(appKey))) return;
      const before = noted?.note ?? null;
      const etag = before !== null && (await isKept(before)) ? before.etag : null;
      const got = await store.get(key, etag);
      if (got === "same") return;
      const next = got === null ? null : await takeDeploy(appKey, key, got, before);
      // Another process was faster, and what it has found may be newer.
      if (next === "torn" || !isUnchanged(appKey, noted)) continue;
      return writeNote(appKey, next, before);
    }
  }

  async function isKept({ manifest, state }: Note): Promise<boolean> {
    return (await cache.has(manifest)) && (await cache.has(state));
  }

  /** "torn" when the state is already that of the next deploy, which replaces the manifest at any moment. */
  async function takeDeploy(
    appKey: string,
    key: string,
    { bytes, etag }: StoredFile,
    before: Note | null,
  ): Promise<Note | "torn"> {
    const { sha256 } = digestBytes(bytes);
    const manifest = await readManifest(bytes);
    const state = manifest?.find(nameStateFile(appKey)) ?? null;
    if (manifest === null || state === null)
      throw new Error(`${key} in ${store.name} is damaged or was written by another version of Precast.`);
    if (!(await cache.has(state))) {
      const got = await store.get(nameStateFile(appKey), null);
      if (got === null || got === "same" || digestBytes(got.bytes).sha256 !== state) return "torn";
      await cache.keep(state, got.bytes);
    }
    await cache.keep(sha256, bytes);
    manifests.keep(sha256, manifest, manifest.size);
    return { etag, manifest: sha256, state, isMixed: before?.manifest === sha256 && before.isMixed };
  }

  // The notes. Whoever writes one has read the one before, and does not replace another.

  const nameNote = (appKey: string) => `${segment(appKey)}.json`;

  async function readNote(appKey: string): Promise<Noted | null> {
    const file = await readStamped(join(folder, nameNote(appKey)), stamps);
    const note = file === null ? null : parseJson(file.bytes.toString(), noteSchema());
    return file === null || note === null ? null : { note, watch: file };
  }

  function isUnchanged(appKey: string, noted: Noted | null): boolean {
    return noted === null ? !exists(join(folder, nameNote(appKey))) : noted.watch.isCurrentOnDisk();
  }

  function writeNote(appKey: string, note: Note | null, before: Note | null): void {
    if (JSON.stringify(note) === JSON.stringify(before)) return;
    const replace = (name: string, text: string) => writeAtomic(folder, name, text, join(folder, randomUUID()));
    if (note === null) rmSync(join(folder, nameNote(appKey)), { force: true });
    else replace(nameNote(appKey), JSON.stringify(note));
    replace(MARKER, randomUUID());
    findKnown(appKey).version = null;
  }

  return {
    find,
    check: (appKey) => flights(appKey, null, new AbortController().signal, () => check(appKey)),
    mix: async ({ appKey, isCurrentOnDisk }) => {
      const noted = await readNote(appKey);
      if (noted !== null && isCurrentOnDisk()) writeNote(appKey, { ...noted.note, isMixed: true }, noted.note);
    },
  };
}

async function isSlower(work: Promise<void>, limit: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limit, true);
  });
  return Promise.race([work.then(() => false), late]).finally(() => clearTimeout(timer));
}
