/** Where workers publish to: the tests' stand-in for S3 as a process, or a folder. It tells when an app becomes visible. */
import { mkdirSync, watch } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startStore } from "../deploy/store.ts";
import { differences, lookAt } from "../tree.ts";

/** The folder of the app in the tree, and when its state was stored, which comes after its other files. */
type OnVisible = (folder: string, at: number) => void;

export type Counted = { readonly requests: number | null; readonly cpu: number | null };

export type BenchTarget = {
  /** As `--target` names it. */
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  /** Requests since the last call, and seconds of CPU so far; null where there is no store. */
  readonly count: () => Promise<Counted>;
  /** Paths at which it differs from a tree. */
  readonly compare: (out: string) => Promise<readonly string[]>;
  readonly stop: () => Promise<void>;
};

/** `name` is that of a target which nobody has used before. */
export function openTarget(name: string, folder: string | null, onVisible: OnVisible): Promise<BenchTarget> {
  return folder === null ? openBucket(name, onVisible) : openFolder(join(folder, name), onVisible);
}

const STATE = /\/\.precast\/([^/]+)\.json$/;

async function openBucket(name: string, onVisible: OnVisible): Promise<BenchTarget> {
  const store = await startStore(STATE, ({ key, at }) => onVisible(STATE.exec(key)?.[1] ?? "", at));
  return {
    url: `s3://content/${name}`,
    env: store.env,
    count: () => store.count(),
    compare: async (out) => {
      const tree = lookAt(out);
      const { objects } = await store.look();
      const held = new Map(objects.map(([key, hash]) => [key.slice(name.length + 1), hash]));
      const paths = [...new Set([...tree.keys(), ...held.keys()])].filter((path) => !path.startsWith(".precast/"));
      return paths.filter((path) => held.get(path) !== tree.get(path)?.hash).sort();
    },
    stop: store.stop,
  };
}

async function openFolder(folder: string, onVisible: OnVisible): Promise<BenchTarget> {
  const states = join(folder, ".precast");
  mkdirSync(states, { recursive: true });
  const watcher = watch(states, (_, file) => {
    if (file?.endsWith(".json")) onVisible(file.slice(0, -".json".length), performance.timeOrigin + performance.now());
  });
  return {
    url: pathToFileURL(folder).href,
    env: {},
    count: async () => ({ requests: null, cpu: null }),
    compare: async (out) => [...differences(out, folder)],
    stop: async () => watcher.close(),
  };
}
