/** `precast mcp`: gives AI assistants the five reads of the API as tools, with the price of each call. */
import PACKAGE from "../../package.json" with { type: "json" };
import { ApiError } from "../../shared/client/client.ts";
import { ConfigError } from "../../shared/config.ts";
import { DONE, defineCommand } from "../command.ts";
import { describeFailure } from "../errors.ts";
import { openReads, type Reads, type ReadsOptions } from "../mcp/reads.ts";

export const mcpCommand = defineCommand({
  name: "mcp",
  describes: "give AI assistants the reads of the API as tools, over standard input and output, until the input ends",
  argument: null,
  database: "unused",
  settings: ["apiUrl", "app", "budget"],
  examples: ["precast mcp --app atlas --budget 100", "precast mcp --app atlas --url https://content.example.com"],
  run: async ({ terminal, stopped }, { apiUrl: url, app: appKey, budget }) => {
    if (appKey === null) throw new ConfigError(["--app is missing (or PRECAST_APP in the environment)"]);
    const stop = stopped();
    const reads = await readApi({ url, appKey, budget });
    // Loaded only here: no other command needs the protocol.
    const { serveReads } = await import("../mcp/server.ts");
    const onError = (error: Error) => terminal.warn(describeFailure(error));
    await serveReads(reads, stop, { version: PACKAGE.version, onError });
    return DONE;
  },
});

async function readApi(options: ReadsOptions): Promise<Reads> {
  try {
    return await openReads(options);
  } catch (error) {
    const why = error instanceof ApiError ? `${error.code}: ${error.message}` : describeCause(error);
    throw new ConfigError([`The content types could not be read from ${options.url} (${why}).`]);
  }
}

/** What `fetch` throws says why only in its cause. */
function describeCause(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
