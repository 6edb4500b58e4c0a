/**
 * What object stores charge in dollars, and what a deploy costs there: its requests, and what it stores from then on. List
 * prices without free allowances, discounts and taxes.
 */
import type { StoreName } from "../../shared/settings/planning.ts";

export type Requests = { readonly put: number; readonly get: number; readonly delete: number };

type PriceList = {
  readonly name: string;
  /** The month in which the prices were looked up. */
  readonly as_of: string;
  readonly source: string;
  /** Dollars for 1,000 requests; a deletion is free in all these stores. */
  readonly put: number;
  readonly get: number;
  /** Dollars for 10^9 bytes in a month. */
  readonly storage: number;
};

const PRICES: Readonly<Record<StoreName, PriceList>> = {
  s3: {
    ...{ name: "Amazon S3 Standard, us-east-1", as_of: "2026-05", source: "https://aws.amazon.com/s3/pricing/" },
    ...{ put: 0.005, get: 0.0004, storage: 0.023 },
  },
  r2: {
    ...{ name: "Cloudflare R2", as_of: "2026-06", source: "https://developers.cloudflare.com/r2/pricing/" },
    ...{ put: 0.0045, get: 0.00036, storage: 0.015 },
  },
  gcs: {
    ...{
      name: "Google Cloud Storage, one region",
      as_of: "2026-09",
      source: "https://cloud.google.com/storage/pricing",
    },
    // $0.000027397 for a GiB and an hour.
    ...{ put: 0.005, get: 0.0004, storage: 0.0186 },
  },
  b2: {
    ...{
      name: "Backblaze B2",
      as_of: "2026-05",
      source: "https://www.backblaze.com/cloud-storage/transaction-pricing",
    },
    ...{ put: 0, get: 0.0004, storage: 0.006 },
  },
};

/**
 * What a deploy of an app sends beside the files: three writes of the lock, and journal, state and manifest; reads of these
 * four before and after the lock is taken; deletions of journal and lock.
 */
const BESIDE_FILES: Requests = { put: 6, get: 8, delete: 2 };

/** The requests that deploy these files of so many apps. */
export function countRequests(apps: number, written: number, gone: number): Requests {
  const { put, get, delete: remove } = BESIDE_FILES;
  return { put: written + apps * put, get: apps * get, delete: gone + apps * remove };
}

export type Price = Pick<PriceList, "name" | "as_of" | "source"> & {
  readonly store: StoreName;
  /** Dollars for the requests of the deploy. */
  readonly requests: number;
  /** Dollars a month for all that is stored, and for what is stored more or less than before. */
  readonly storage: number;
  readonly storage_growth: number;
};

/** `bytes` are those of all files, of which `growth` are more than before. */
export function priceDeploy(store: StoreName, { put, get }: Requests, bytes: number, growth: number): Price {
  const { name, as_of, source, ...prices } = PRICES[store];
  const priceStorage = (size: number) => roundPrice((size / 1e9) * prices.storage);
  const requests = roundPrice((put * prices.put + get * prices.get) / 1_000);
  return { store, name, as_of, source, requests, storage: priceStorage(bytes), storage_growth: priceStorage(growth) };
}

/** To billionths of a dollar: sums of fractions would end in noise. */
function roundPrice(dollars: number): number {
  return Math.round(dollars * 1e9) / 1e9;
}
