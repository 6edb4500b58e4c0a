/** `precast studio`: opens a page on this machine that shows the API, the content, the tree and what it all costs. */
import { createServer } from "node:http";
import { toNodeHandler } from "h3";
import { listenOn } from "../../server/http/listen.ts";
import { DONE, defineCommand } from "../command.ts";
import { QUERY_TIMEOUT, withDatabase } from "../database.ts";
import { describeFailure } from "../errors.ts";
import { describeMediaPort, openMediaPort } from "../serve/media-port.ts";
import { openStudio } from "../studio/studio.ts";

export const studioCommand = defineCommand({
  name: "studio",
  describes:
    "open a page on this machine that shows requests and their prices, content, usage, the tree and its health",
  argument: null,
  settings: ["studioPort", "open", "monthlyPlan", "mediaPort", "mediaHost", "connections", "workers"],
  examples: [
    "precast studio --open",
    "precast studio --port 4001 --media-port 3001",
    "precast serve --admin-port 9090 --studio",
  ],
  run: async ({ terminal, now, stopped }, settings) => {
    const stop = stopped();
    await withDatabase(
      settings,
      async (database) => {
        const onError = (error: unknown) => terminal.warn(describeFailure(error));
        const media = await openMediaPort(settings, onError);
        const studio = openStudio({ database, settings, now, hosts: [], media: media?.url ?? null, onError });
        const server = createServer(LIMITS, toNodeHandler(studio.app));
        try {
          const url = await listenOn(server, LOOPBACK, settings.studioPort, settings.open);
          const addresses = { url, ...(media === null ? {} : { media: media.url }) };
          terminal.result(`${terminal.colors.green("Precast studio:")} ${url}`, addresses);
          if (media !== null) terminal.say(describeMediaPort(media, settings));
          await stop;
        } finally {
          server.close();
          server.closeAllConnections();
          studio.close();
          await media?.close();
        }
      },
      { queryTimeout: QUERY_TIMEOUT, share: true },
    );
    return DONE;
  },
});

/** Milliseconds; and bytes, for a request that is as long as the API allows and encoded once more. */
const LIMITS = { requestTimeout: 5_000, headersTimeout: 5_000, maxHeaderSize: 131_072 };
/** Drafts leave this machine in no case. */
const LOOPBACK = "127.0.0.1";
