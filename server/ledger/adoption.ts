/** Takes over the journals of dead owners, so that their counts are sent. */
import { readdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { openAttempts } from "./attempt.ts";
import { isDead, nameOf, type Owner, readName, watchForAbandoned } from "./owner.ts";
import { unlessGone } from "./unless-gone.ts";

export type AdoptionOptions = {
  readonly folder: string;
  readonly owner: Owner;
  /**
   * Called before a taken journal gets the name `file`. If that is the journal still being written, which another
   * server had taken before, resolves once nothing is appended to it any more.
   */
  readonly beforeTake: (file: string) => Promise<void>;
  /** Called with the new name of each journal that was taken. */
  readonly onTaken: (file: string) => void;
  /** Called with what keeps a journal from being taken, once for each. */
  readonly onError: (error: unknown) => void;
};

/** Throws when it cannot read the folder. */
export type Adopt = () => Promise<void>;

export function openAdoption({ folder, owner, beforeTake, onTaken, onError }: AdoptionOptions): Adopt {
  const attempt = openAttempts(onError);
  const findAbandoned = watchForAbandoned();

  async function take(file: string, id: string): Promise<void> {
    const own = nameOf(owner, id);
    // A journal that is appended to while it is being sent would be deleted with lines that were not sent.
    await beforeTake(own);
    // If two servers take the same journal, one of them finds it gone.
    if ((await unlessGone(rename(join(folder, file), join(folder, own)))) !== null) onTaken(own);
  }

  return async () => {
    const ids = new Map<string, string>();
    const dead = new Set<string>();
    const times = new Map<string, number>();
    for (const file of await readdir(folder)) {
      const name = readName(file);
      if (name === null || name.owner.ledger === owner.ledger) continue;
      ids.set(file, name.id);
      if (isDead(name.owner, owner)) dead.add(file);
    }
    const readTime = async (file: string) => {
      const found = await unlessGone(stat(join(folder, file)));
      if (found !== null) times.set(file, found.mtimeMs);
    };
    for (const file of ids.keys()) await attempt(`look at ${file}`, () => readTime(file));
    for (const file of new Set([...dead, ...findAbandoned(times)]))
      await attempt(`take ${file}`, () => take(file, ids.get(file) as string));
  };
}
