/** Holds the memory of a large build down: V8 lets garbage grow to four times what lives before it looks, here to half as much again. */
import { setFlagsFromString } from "node:v8";

export function limitHeap(): void {
  setFlagsFromString("--heap-growing-percent=50");
}
