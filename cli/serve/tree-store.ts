/** Opens the store that `serve --tree` reads: a bucket or a folder as `deploy` writes it, or a CDN that shows all of it. */
import type { TreeStore } from "../../server/deployed/store.ts";
import { ConfigError } from "../../shared/config.ts";
import {
  exchange,
  isRetryableStatus,
  makeFault,
  overloadedFault,
  type Received,
  RemoteFault,
  type RetryPolicy,
  type Verdict,
} from "../deploy/http.ts";
import { MARKER, readMarker } from "../deploy/layout.ts";
import { openTarget, type StoreSettings } from "../deploy/target.ts";

/** Requests wait for the store, and the server tries again by itself: seconds, and no retries. */
const LIMITS = { concurrency: 64, timeout: 2, retries: 0 };

type TreeStoreSettings = Omit<StoreSettings, keyof typeof LIMITS>;

/** Throws ConfigError for an invalid address or missing credentials. */
export function openTreeStore(text: string, settings: TreeStoreSettings, now: () => Date): TreeStore {
  const policy = { ...LIMITS, now };
  if (/^https?:\/\//.test(text)) return openWebStore(text, policy);
  if (!/^(s3:\/\/|file:)/.test(text)) throw invalid(text, `specify ${ADDRESSES}.`);
  const { store } = openTarget(text, { ...settings, ...LIMITS }, policy);
  return { name: store.name, mayLag: false, get: store.getIfChanged };
}

const ADDRESSES = "s3://bucket/prefix, file:///folder or https://host/path";

function invalid(text: string, why: string): ConfigError {
  return new ConfigError([`${text || "An empty text"} is not the address of a deployed tree: ${why}`]);
}

/**
 * Whether a server can use the store, before it starts: it starts also while the store is away. Throws for a store that can
 * never be used as it is.
 */
export async function checkTreeStore(store: TreeStore, warn: (text: string) => void): Promise<void> {
  const marker = await store.get(MARKER, null).catch((error: unknown) => {
    if (!(error instanceof RemoteFault && error.isTransient)) throw error;
    warn(`${error.message} The server begins with what it has kept of the tree at ${store.name}.`);
    return "same" as const;
  });
  if (marker === "same") return;
  if (marker === null && store.mayLag) throw new ConfigError([describeClosed(store)]);
  if (marker === null)
    warn(`Nothing is deployed at ${store.name} yet: all requests are answered live until something is.`);
  else if (readMarker(marker.bytes.toString()) !== "apps")
    throw new Error(
      `${MARKER} at ${store.name} was not written by this version of Precast. Deploy there with \`precast deploy\`, or correct --tree.`,
    );
}

function describeClosed({ name }: TreeStore): string {
  const cause = "nothing is deployed there, or .precast/ is closed, as it should be for the public";
  const remedy = "Name the bucket itself (s3://bucket/prefix), or an address at which only servers can read .precast/";
  return `${name} does not show ${MARKER}, by which a server finds what was deployed: ${cause}. ${remedy}.`;
}

// Reads a tree at a CDN or a web server.

function openWebStore(text: string, policy: RetryPolicy): TreeStore {
  const base = URL.canParse(text) ? new URL(text) : null;
  if (base === null || base.search !== "" || base.hash !== "" || base.username !== "" || base.password !== "")
    throw invalid(text, "specify https://host/path, without a user name, ? and #.");
  const name = base.href.replace(/\/+$/, "");
  return {
    name,
    // What caches still have of before a deploy.
    mayLag: true,
    get: (key, etag) => {
      const headers: Record<string, string> = etag === null ? {} : { "if-none-match": etag };
      const make = () => ({ method: "GET", url: new URL(`${name}/${key}`), headers });
      return exchange(make, (received) => readReceived(received, base.host), base.host, policy);
    },
  };
}

/** A bucket behind a CDN that may not be listed refuses what it does not have. */
const MISSING = [403, 404, 410];

function readReceived(
  { status, headers, body }: Received,
  host: string,
): Verdict<Awaited<ReturnType<TreeStore["get"]>>> {
  if (status === 200) return { done: { bytes: body, etag: headers.etag ?? null } };
  if (status === 304) return { done: "same" };
  if (MISSING.includes(status)) return { done: null };
  if (isRetryableStatus(status)) return overloadedFault(host, String(status), true);
  return makeFault(`${host} refused a request (${status}). Check the address in --tree.`);
}
