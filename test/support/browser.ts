/** A real browser without a window, Debian's Chromium, and what its pages do that they should not. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import type { Place } from "./cli.ts";

/** Null where none is installed: then tests that need it are skipped, which `.ci/run` does not allow. */
export const BROWSER = findBrowser();

function findBrowser(): string | null {
  try {
    return execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
  } catch {
    return null;
  }
}

export function openBrowser(): Promise<Browser> {
  // Chromium as root has no sandbox, and the pages are our own.
  return chromium.launch({ executablePath: BROWSER as string, args: ["--no-sandbox"] });
}

/** A page that notes what it asks other machines for, and what the browser reports as an error. */
export type WatchedPage = {
  readonly page: Page;
  readonly foreign: readonly string[];
  readonly errors: readonly string[];
};

export async function openPage(browser: Browser, size = { width: 1280, height: 900 }): Promise<WatchedPage> {
  const page = await browser.newPage({ viewport: size });
  const foreign: string[] = [];
  const errors: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(http:\/\/(127\.0\.0\.1|localhost)[:/]|data:|blob:|file:)/.test(url)) foreign.push(url);
  });
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  return { page, foreign, errors };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

type Violation = { readonly id: string; readonly impact: string; readonly nodes: readonly { readonly html: string }[] };

/** Checks that axe-core finds nothing serious on the page as it is, without what others made for its frames. */
export async function expectAccessible(page: Page): Promise<void> {
  const violations = await page.evaluate<Violation[]>(
    `${AXE}; axe.run(document, { iframes: false, resultTypes: ["violations"] }).then(({ violations }) => violations)`,
  );
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
}

/** Starts the studio of a place, and resolves to its address when it listens. */
export async function startStudio(place: Place, line = ""): Promise<string> {
  const studio = place.start(`studio --port 0 ${line}`);
  await studio.printed(/Precast studio: \S+\n/);
  return /studio: (\S+)/.exec(studio.output().stdout)?.[1] ?? "";
}
