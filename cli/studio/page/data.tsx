/** What the views are given, and how they load what they show, or show that it is loading, or why it could not be. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { App } from "../../../shared/api/catalog.ts";
import type { ReportData } from "../report.ts";

/** The app that is shown. */
export type ViewProps = { readonly app: App };

export type Data<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly why: string }
  | { readonly kind: "loaded"; readonly value: T };

/** The name of a view's data with its parameters. A report has all data in its file, by this name. */
export function nameData(name: string, params: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== ""));
  return `data/${name}${query.size === 0 ? "" : `?${query}`}`;
}

/** What a report has in its file: each view's data. Null in the studio. */
const FILE = document.getElementById("data")?.textContent ?? null;
const IN_FILE = new Map(
  (JSON.parse(FILE ?? "[]") as readonly ReportData[]).map(({ name, params, value }) => [nameData(name, params), value]),
);
export const IS_REPORT = FILE !== null;

export function useData<T>(name: string, params: Readonly<Record<string, string>> = {}): Data<T> {
  const path = nameData(name, params);
  const [data, setData] = useState<{ readonly path: string; readonly data: Data<T> }>();
  useEffect(() => {
    if (IS_REPORT) return undefined;
    const leaving = new AbortController();
    load<T>(path, leaving.signal).then(
      (value) => setData({ path, data: { kind: "loaded", value } }),
      (error: Error) => {
        if (!leaving.signal.aborted) setData({ path, data: { kind: "failed", why: error.message } });
      },
    );
    return () => leaving.abort();
  }, [path]);
  if (IS_REPORT) return { kind: "loaded", value: IN_FILE.get(path) as T };
  return data?.path === path ? data.data : { kind: "loading" };
}

export async function load<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal: signal ?? null }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Error("The studio does not answer. Is its process still running?");
  });
  const value = await response.json();
  if (!response.ok) throw new Error((value as { readonly error: string }).error);
  return value as T;
}

/** Shows `children` once the data is there. */
export function Loaded<T>({
  of,
  children,
}: {
  readonly of: Data<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  switch (of.kind) {
    case "loading":
      return (
        <p role="status" class="quiet">
          Loading …
        </p>
      );
    case "failed":
      return (
        <p role="alert" class="bad">
          {of.why}
        </p>
      );
    case "loaded":
      return <>{children(of.value)}</>;
  }
}

/** In UTC, to the minute. */
export function Time({ of: time }: { readonly of: string | null }) {
  if (time === null) return null;
  const utc = new Date(time).toISOString();
  return <time dateTime={utc}>{utc.slice(0, 16).replace("T", " ")}</time>;
}
