/** The tutorials of READMEs work as they are written: their files are written, their commands run, their answers come. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { openEmbeddedPlace, type RunningServer } from "../support/cli.ts";

/** A fenced block; `file` is the path that stands before it. */
type Block = { readonly kind: string; readonly body: string; readonly file: string | null };

function blocksOf(text: string): Block[] {
  return [...text.matchAll(/(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$/gms)].map(
    ([, file = null, kind = "", body = ""]) => ({ file, kind, body }),
  );
}

test.each(["cli/import/README.md", "cli/convert/README.md"])("%s", async (readme) => {
  const blocks = blocksOf(readFileSync(readme, "utf8"));
  expect(blocks.length).toBeGreaterThan(5);
  const place = await openEmbeddedPlace();
  let server: RunningServer | null = null;
  let printed = "";
  for (const { kind, body, file } of blocks) {
    if (file !== null) {
      mkdirSync(dirname(join(place.folder, file)), { recursive: true });
      writeFileSync(join(place.folder, file), body);
    } else if (kind === "text") for (const line of body.trim().split("\n")) expect(printed).toContain(line);
    else if (kind === "sh") for (const line of body.trim().split("\n")) printed = await run(line);
  }

  /** Ports are free ones, because other tests run beside this one. */
  async function run(line: string): Promise<string> {
    const words = line.replace(/^npx precast /, "");
    if (words.startsWith("serve")) {
      server = await place.serve(words.replace("serve", "").replace("3001", "0"));
      return "";
    }
    if (line.startsWith("curl")) {
      const { code, stdout } = await place.spawn("bash", [
        "-c",
        line.replace("http://127.0.0.1:3000", server?.url ?? ""),
      ]);
      expect(code, line).toBe(0);
      return stdout;
    }
    const { code, stdout, stderr } = await place.call(words);
    expect([code, stderr], line).toEqual([0, ""]);
    return stdout;
  }
  await place.close();
});
