/**
 * Takes the answers of a build and writes those that differ from the tree to a stage beside it. The tree itself changes
 * only once all are there, so a build that fails leaves it as it was.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { segment } from "../../../shared/address.ts";
import { openAnswerBuffer } from "./answer-buffer.ts";
import { type Change, type ChangesWriter, openChanges } from "./changes.ts";
import { removeAll } from "./folder.ts";
import { CARRIED, commitStage, publish, STAGE, STAGED_STATES, STAGED_TREE } from "./publish.ts";
import { openStagedApp, type PendingAnswer, type StageContext, type StagedApp } from "./staged-app.ts";
import type { WriteResults } from "./write.ts";
import { openWriters } from "./writers.ts";

export type Stage = {
  readonly openApp: (key: string) => StagedApp;
  /** Resolves when everything that was put is on the stage. */
  readonly settle: () => Promise<void>;
  /** Whether any file or state of the tree is to change. */
  readonly hasChanges: () => boolean;
  /** Moves the staged files into the tree. */
  readonly commit: () => Promise<void>;
  /** Ends the writers and deletes what was not committed. */
  readonly close: () => Promise<void>;
};

export type StageOptions = {
  readonly out: string;
  readonly dryRun: boolean;
  /** Throws once the tree, and with it the stage, belongs to another build. */
  readonly check: () => void;
  readonly builtAt: string;
  /** Called for each file that is put, with the size of its answer; 0 for a file that is deleted. */
  readonly onFile: (bytes: number) => void;
  readonly onChange: (change: Change) => void;
};

/** Maximum number of batches that wait to be written, which bounds memory. */
const MAX_WAITING_BATCHES = 4;

export function openStage({ out, dryRun, check, builtAt, onFile, onChange }: StageOptions): Stage {
  const folder = join(out, STAGE);
  const place = { tree: out, stage: dryRun ? null : join(folder, STAGED_TREE) };
  const writers = openWriters();
  const buffer = openAnswerBuffer<PendingAnswer>(writers.buffer);
  const waiting: Promise<void>[] = [];
  let hasChanges = false;
  const changes = dryRun ? null : openFolder();

  function openFolder(): ChangesWriter {
    mkdirSync(folder, { recursive: true });
    return openChanges(folder, builtAt, join(out, CARRIED));
  }

  const send = async () => {
    check();
    const { items, ends, ...answers } = buffer.take();
    const before = waiting.at(-1);
    const written = writers.write({ ...place, ...answers, ends });
    // Outcomes are noted in the order in which the answers were put, whichever thread finishes first.
    const noted = Promise.all([written, before]).then(([outcomes]) => {
      check();
      for (const [index, { address, onWritten }] of items.entries()) {
        onWritten(address, (ends[index] as number) - (ends[index - 1] ?? 0), outcomes[index] as WriteResults[number]);
      }
    });
    noted.catch(() => {});
    waiting.push(noted);
    if (waiting.length > MAX_WAITING_BATCHES) await waiting.shift();
  };

  const write: StageContext["write"] = async (file, body, existing, pending) => {
    const size = buffer.add(file, body, existing, pending);
    onFile(size);
    if (buffer.isFull()) await send();
    return size;
  };
  const addChange = (change: Change) => {
    hasChanges = true;
    changes?.add(change);
    onChange(change);
  };
  const stageState = (key: string, state: string) => {
    hasChanges = true;
    if (dryRun) return;
    check();
    mkdirSync(join(folder, STAGED_STATES), { recursive: true });
    writeFileSync(join(folder, STAGED_STATES, `${segment(key)}.json`), state);
  };
  const skip = () => onFile(0);
  const settle = async () => {
    if (!buffer.isEmpty()) await send();
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
    openApp: (key) => openStagedApp(key, { out, write, addChange, stageState, skip }),
    settle,
    hasChanges: () => hasChanges,
    commit,
    close,
  };
}
