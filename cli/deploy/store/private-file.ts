/** Writes the private files: those that Precast keeps in a store for itself (manifest, journal, checkpoints, lease). */
import { digestOf } from "../../build/file-digest.ts";
import { PRIVATE_HEADERS, type PutOptions, type PutOutcome, type Store } from "./store.ts";

export function putPrivateFile(
  store: Store,
  key: string,
  text: string,
  options: Omit<PutOptions, "headers" | "sha256">,
): Promise<PutOutcome> {
  const bytes = new TextEncoder().encode(text);
  return store.put(key, bytes, { headers: PRIVATE_HEADERS, sha256: digestOf(bytes).sha256, ...options });
}
