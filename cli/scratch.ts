/** Temporary folders of commands: removed when the command has ended, and also when a signal ends the process. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "./command.ts";

/** `name` tells a person who finds the folder whose it was. */
export async function withScratch<T>(
  { beforeKilled }: Pick<Context, "beforeKilled">,
  name: string,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), `precast-${name}-`));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const forget = beforeKilled?.(remove);
  try {
    return await use(folder);
  } finally {
    remove();
    forget?.();
  }
}
