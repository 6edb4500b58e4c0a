/** Serves the five reads as tools over standard input and output, in the Model Context Protocol. */
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";
import type { AnyRequest } from "../../shared/client/types.ts";
import type { ReadName, Reads } from "./reads.ts";

export type ServeOptions = { readonly version: string; readonly onError: (error: Error) => void };

/** Resolves when the assistant has closed the input, or `stopped` has resolved. */
export async function serveReads(
  reads: Reads,
  stopped: Promise<void>,
  { version, onError }: ServeOptions,
): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    for (const event of ["end", "close"]) process.stdin.once(event, () => resolve());
  });
  const handle = serveStdio(() => registerReads(new McpServer({ name: "precast", version }), reads), {
    onerror: onError,
  });
  await Promise.race([ended, stopped]);
  await handle.close();
}

function registerReads(server: McpServer, { types, descriptions, read }: Reads): McpServer {
  for (const [name, { schema, ask }] of Object.entries(describeInputs(types.map(({ slug }) => slug)))) {
    server.registerTool(
      name,
      {
        description: descriptions[name as ReadName],
        inputSchema: schema,
        annotations: { readOnlyHint: true, openWorldHint: false },
      },
      async (input) => {
        const { texts, isError } = await read(ask(input as never));
        return { content: texts.map((text) => ({ type: "text" as const, text })), isError };
      },
    );
  }
  return server;
}

type Input = { readonly schema: z.ZodObject; readonly ask: (input: never) => AnyRequest };

function describeInputs(slugs: readonly string[]): Record<ReadName, Input> {
  const type = (slugs.length === 0 ? z.string() : z.enum(slugs)).describe("The content type.");
  const value = z.union([z.string(), z.number(), z.boolean()]);
  const operators = z
    .record(z.string(), z.union([value, z.array(value)]))
    .describe("eq, neq, gt, gte, lt, lte, contains, starts_with; in and nin have a list.");
  const query = {
    filter: z
      .record(z.string(), z.union([value, operators]))
      .optional()
      .describe("By field: a value, or operators."),
    sort: z.string().optional().describe("One field; with a leading - descending."),
    page: z.int().min(1).optional(),
    perPage: z.int().min(1).max(100).optional(),
    fields: z.array(z.string()).optional().describe("Only these fields."),
  };
  const id = z.string().describe("The id of the entry, a UUID.");
  const populate = z.array(z.string()).optional().describe("Relations to show as entries.");
  const q = z.string().describe("2 to 200 characters. Every word has to occur.");
  const same = (input: AnyRequest) => input;
  return {
    catalog: { schema: z.object({}), ask: () => ({}) },
    schema: { schema: z.object({ type }), ask: ({ type: slug }: { type: string }) => ({ id: slug }) },
    list: { schema: z.object({ type, ...query }), ask: same },
    get: { schema: z.object({ type, id, populate }), ask: same },
    search: { schema: z.object({ type, q, ...query }), ask: same },
  };
}
