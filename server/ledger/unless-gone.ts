/** Journals can vanish at any moment, because another server that shares their folder takes or sends them. */

/** Resolves to null when the file no longer exists. */
export async function unlessGone<T>(effect: Promise<T>): Promise<T | null> {
  try {
    return await effect;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
