/** `precast init`: makes the folder of a new project, and asks on a terminal for what the command line leaves out. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import PACKAGE from "../../package.json" with { type: "json" };
import { ConfigError } from "../../shared/config.ts";
import { exists, makeFolders } from "../../shared/files.ts";
import { TEMPLATE_NAMES, type TemplateName } from "../../shared/settings/common.ts";
import { type Context, DONE, defineCommand, FAILED } from "../command.ts";
import { makeSlug } from "../convert/names.ts";
import { type ProjectFile, writeProject } from "../init/project.ts";

export const initCommand = defineCommand({
  name: "init",
  describes: "make a folder with content to begin with, settings, and scripts that build and serve it",
  argument: "[folder]",
  settings: ["template"],
  database: "unused",
  examples: ["precast init site", "precast init site --template shop"],
  run: async (context, settings, argument) => {
    const { terminal } = context;
    const chosen = await choose(context, settings, { folder: argument, template: settings.template });
    if (chosen === null) {
      terminal.warn("Nothing was written.");
      return FAILED;
    }
    const { folder, template } = chosen;
    const title = basename(resolve(folder));
    const name = `${title.charAt(0).toUpperCase()}${title.slice(1)}`;
    const files = writeProject({ template, key: makeSlug(title), name, version: PACKAGE.version });
    writeFiles(folder, files);
    terminal.say(`Wrote ${files.length} files into ${folder}, from the template ${template}.`);
    const missing = await installPrecast(folder, context);
    const place = /^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder);
    const steps = [...(folder === "." ? [] : [`cd ${place}`]), ...(missing ? ["npm install"] : []), "npm start"];
    const next = steps.join(" && ");
    terminal.say(`Next: run \`${next}\`.`);
    if (settings.json) terminal.result("", { folder, template, files: files.map(({ path }) => path), next });
    return DONE;
  },
});

type Choice = { readonly folder: string; readonly template: TemplateName };

/** Null when the person who is asked wants to stop. */
async function choose(
  { given }: Context,
  { json, quiet }: { readonly json: boolean; readonly quiet: boolean },
  { folder, template }: { readonly folder: string; readonly template: TemplateName | null },
): Promise<Choice | null> {
  const isAnybodyThere = process.stdin.isTTY === true && process.stdout.isTTY === true;
  if (!isAnybodyThere || json || quiet || given.env.CI) return { folder: folder || ".", template: template ?? "blog" };
  const named = folder || (await askFolder());
  const chosen = named === null ? null : (template ?? (await askTemplate()));
  return named === null || chosen === null ? null : { folder: named, template: chosen };
}

/** The library is loaded only where somebody is asked. */
async function askFolder(): Promise<string | null> {
  const { isCancel, text } = await import("@clack/prompts");
  const answer = await text({ message: "Folder of the project", placeholder: "site", defaultValue: "site" });
  return isCancel(answer) ? null : answer;
}

async function askTemplate(): Promise<TemplateName | null> {
  const { isCancel, select } = await import("@clack/prompts");
  const options = TEMPLATE_NAMES.map((value) => ({ value, label: value, hint: HINTS[value] }));
  const answer = await select({ message: "Content to begin with", options });
  return isCancel(answer) ? null : answer;
}

const HINTS: Readonly<Record<TemplateName, string>> = {
  blog: "posts and their authors",
  shop: "products and categories",
  docs: "pages of a manual, in sections",
  empty: "one type without entries",
};

/** Throws ConfigError when any of the files is there already; none is written then. */
function writeFiles(folder: string, files: readonly ProjectFile[]): void {
  const present = files.map(({ path }) => join(folder, path)).filter(exists);
  if (present.length > 0)
    throw new ConfigError([
      ...present.map((path) => `${path} is there already`),
      "Nothing was written. Name another folder: precast init <folder>",
    ]);
  for (const { path, text } of files) {
    makeFolders(dirname(join(folder, path)));
    writeFileSync(join(folder, path), text, { flag: "wx" });
  }
}

/** Where npx keeps what it runs. Nothing there is found by the scripts of a project. */
const NPX = /[\\/]_npx[\\/][^\\/]+[\\/]node_modules[\\/]precast[\\/]/;
const WITH_NPM = ["install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];

/**
 * Scripts of npm find Precast where it is installed in the project or in a folder above it. After `npx precast init` it
 * is in neither, and is installed. Resolves to whether it is still missing.
 */
async function installPrecast(folder: string, { terminal }: Context): Promise<boolean> {
  if (isInstalledAbove(resolve(folder))) return false;
  const program = fileURLToPath(import.meta.url);
  if (!NPX.test(program)) return true;
  terminal.say("Installing Precast there.");
  await promisify(execFile)("npm", [...WITH_NPM, ...findPackageFile(program)], { cwd: folder }).catch(
    (error: Error) => {
      const why = error.message.split("\n")[1] ?? error.message;
      throw new Error(
        `All files were written, but \`npm install\` failed (${why}). Run it in ${folder}, then npm start.`,
      );
    },
  );
  return false;
}

function isInstalledAbove(folder: string): boolean {
  if (exists(join(folder, "node_modules", ".bin", "precast"))) return true;
  return dirname(folder) !== folder && isInstalledAbove(dirname(folder));
}

/** The file that npx has run instead of a version of the registry, as in `npx ./precast.tgz`. */
function findPackageFile(program: string): string[] {
  const [root = ""] = /^.*[\\/]_npx[\\/][^\\/]+/.exec(program) ?? [];
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly dependencies?: { readonly precast?: string };
  };
  const [, file] = /^file:(.*)$/.exec(dependencies?.precast ?? "") ?? [];
  return file === undefined ? [] : [resolve(root, file)];
}
