/**
 * Limits the memory of a large build: by default V8 lets the heap grow to four times the size of its live objects
 * before it collects garbage, with this flag to one and a half times.
 */
import { setFlagsFromString } from "node:v8";

export function limitHeap(): void {
  setFlagsFromString("--heap-growing-percent=50");
}
