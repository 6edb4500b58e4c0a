/**
 * Takes the answers of a build and puts those that differ from the tree on a stage beside it. Nothing of the tree is
 * touched before all are there: a build that fails leaves the tree as it was.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { segment } from "../../../shared/address.ts";
import { type Change, type ChangesWriter, openChanges } from "./changes.ts";
import { removeAll } from "./folder.ts";
import { openLoad } from "./load.ts";
import { CARRIED, commitStage, publish, STAGE, STAGED_STATES, STAGED_TREE } from "./publish.ts";
import { type Board, openStagedApp, type Put, type StagedApp } from "./staged-app.ts";
import type { Written } from "./write.ts";
import { openWriters } from "./writers.ts";

export type Stage = {
  readonly openApp: (key: string) => StagedApp;
  /** Resolves when all that was put is on the stage. */
  readonly settle: () => Promise<void>;
  /** Is there anything that the tree does not have? */
  readonly isPending: () => boolean;
  /** Makes the build the tree. */
  readonly commit: () => Promise<void>;
  /** Forgets what was not committed. */
  readonly close: () => Promise<void>;
};

export type StageOptions = {
  readonly out: string;
  readonly dryRun: boolean;
  /** Throws where the tree, and with it the stage, is another build's by now. */
  readonly check: () => void;
  readonly builtAt: string;
  /** Called with each file that is put, and the size of its answer: 0 for one that goes. */
  readonly onFile: (bytes: number) => void;
  readonly onChange: (change: Change) => void;
};

/** So many loads may wait to be written; with it memory is bounded. */
const MAX_WAITING = 4;

export function openStage({ out, dryRun, check, builtAt, onFile, onChange }: StageOptions): Stage {
  const folder = join(out, STAGE);
  const place = { tree: out, stage: dryRun ? null : join(folder, STAGED_TREE) };
  const writers = openWriters();
  const load = openLoad<Put>(writers.buffer);
  const waiting: Promise<void>[] = [];
  let pending = false;
  const changes = dryRun ? null : openFolder();

  function openFolder(): ChangesWriter {
    mkdirSync(folder, { recursive: true });
    return openChanges(folder, builtAt, join(out, CARRIED));
  }

  const send = async () => {
    check();
    const { items, ends, ...answers } = load.take();
    const before = waiting.at(-1);
    const written = writers.write({ ...place, ...answers, ends });
    // Noted in the order in which they were put, whichever thread is done first.
    const noted = Promise.all([written, before]).then(([outcomes]) => {
      check();
      for (const [index, { address, note }] of items.entries()) {
        note(address, (ends[index] as number) - (ends[index - 1] ?? 0), outcomes[index] as Written[number]);
      }
    });
    noted.catch(() => {});
    waiting.push(noted);
    if (waiting.length > MAX_WAITING) await waiting.shift();
  };

  const write: Board["write"] = async (file, body, standing, put) => {
    const size = load.add(file, body, standing, put);
    onFile(size);
    if (load.isFull()) await send();
    return size;
  };
  const tell = (change: Change) => {
    pending = true;
    changes?.add(change);
    onChange(change);
  };
  const keep = (key: string, state: string) => {
    pending = true;
    if (dryRun) return;
    check();
    mkdirSync(join(folder, STAGED_STATES), { recursive: true });
    writeFileSync(join(folder, STAGED_STATES, `${segment(key)}.json`), state);
  };
  const skip = () => onFile(0);
  const settle = async () => {
    if (!load.isEmpty()) await send();
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next;
  };
  const commit = async () => {
    if (changes === null) return;
    await changes.close();
    check();
    commitStage(out);
    await publish(out, check);
  };
  const close = async () => {
    await writers.close();
    if (dryRun) return;
    check();
    await removeAll(folder);
  };
  return {
    openApp: (key) => openStagedApp(key, { out, write, tell, keep, skip }),
    settle,
    isPending: () => pending,
    commit,
    close,
  };
}
