/** What Linux lets root alone do: mount a disk, make a namespace. */

/** Why it cannot be done here; null where it can. */
export const NO_ROOT: string | null =
  process.platform !== "linux" ? "this is not Linux" : process.getuid?.() !== 0 ? "only root can" : null;

/** The name of tests that need it. */
export function asRoot(name: string): string {
  return NO_ROOT === null ? name : `${name} (skipped: ${NO_ROOT})`;
}
