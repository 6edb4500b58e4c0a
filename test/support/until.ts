/** Polls for conditions that no event announces. */
import { setTimeout as sleep } from "node:timers/promises";

const DEADLINE_MS = 30_000;

/** Resolves when the condition holds; fails when it has not by the deadline. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Waited ${DEADLINE_MS / 1_000} s for ${what}`);
    await sleep(20);
  }
}
