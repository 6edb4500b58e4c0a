/** `precast completion`: what the Tab key does in real shells, with the script that the command prints. */
import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openPlace, type Place } from "../support/cli.ts";
import { unlessLacking } from "../support/root.ts";
import { endSessions, NO_TERMINAL, startOnTerminal } from "../support/session.ts";

let place: Place;
beforeAll(() => {
  place = openPlace();
  mkdirSync(join(place.folder, "content"));
});
afterEach(endSessions);
afterAll(() => place.close());

function lacks(shell: string): string | null {
  const isThere = (folder: string) => {
    try {
      accessSync(join(folder, shell), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  return NO_TERMINAL ?? ((process.env.PATH ?? "").split(delimiter).some(isThere) ? null : shell);
}

/** How each shell is started without files of the user, what it needs, and a `precast` that says what it was given. */
const SHELLS: readonly (readonly [shell: string, start: string, setup: string])[] = [
  ["bash", "bash --norc --noprofile -i", 'precast() { echo "<$*>"; }'],
  ["zsh", "zsh -f -i", 'autoload -U compinit; compinit -u -D; precast() { echo "<$*>" }'],
  ["fish", "fish --no-config -i", 'function precast; echo "<$argv>"; end'],
];

const TYPED: readonly (readonly [keys: string, given: string])[] = [
  ["buil\t", "build"],
  ["verify --sam\t", "verify --sample"],
  ["types --lang js\t", "types --lang json-schema"],
  ["init --temp\tdo\t", "init --template docs"],
  ["edge varn\t", "edge varnish"],
  ["convert wordp\tconte\t", "convert wordpress content"],
  ["help open\t", "help openapi"],
  ["import conte\t", "import content"],
  ["build --data-d\tconte\t", "build --data-dir content"],
  ["usage --colour\t", "usage --colour"],
];

describe.each(SHELLS)("%s", (shell, start, setup) => {
  test.skipIf(lacks(shell) !== null)(
    unlessLacking(lacks(shell), "completes commands, options and values"),
    async () => {
      const { code, stdout, stderr } = await place.call(`completion ${shell}`);
      expect([code, stderr]).toEqual([0, ""]);
      writeFileSync(join(place.folder, "script"), stdout);
      const session = startOnTerminal(start, place.folder);
      session.type(`${setup}\r. ./script\recho be""gin\r`);
      await session.printed(/begin/);
      for (const [keys, given] of TYPED) {
        session.type(`precast ${keys}\r`);
        await session.printed(new RegExp(`<${given}/? ?>`));
      }
    },
  );

  test("the script names every command and option of the help", async () => {
    const script = (await place.call(`completion ${shell}`)).stdout;
    const help = (await place.call("help")).stdout;
    const commands = [...help.matchAll(/^ {2}([a-z]+) \[/gm)].map(([, command = ""]) => command);
    expect(commands.length).toBeGreaterThan(15);
    for (const command of commands.filter((name) => name !== "help")) {
      const options = (await place.call(`${command} --help`)).stdout.match(/(?<=^ +(?:-h, )?--)[a-z-]+/gm) ?? [];
      const told = script.split("\n").join(" ");
      for (const option of options)
        expect([command, told]).toEqual([command, expect.stringMatching(`-l ${option}\\b|--${option}\\b`)]);
      expect(script).toMatch(new RegExp(`\\b${command}\\b`));
    }
  });
});

test("a shell that is not known is refused with those that are", async () => {
  const { code, stdout, stderr } = await place.call("completion ksh");
  expect([code, stdout, stderr]).toEqual([1, "", '"ksh" must be one of bash, zsh, fish\n']);
});
