/** The events of a soak, one after the other: edits that are built, outages of the database and killed workers. */
import { setTimeout as sleep } from "node:timers/promises";
import type { TestServer } from "../../support/postgres.ts";
import { until } from "../../support/until.ts";
import { withClient } from "../client.ts";
import { entryOf } from "../content.ts";
import { runBuild } from "../precast.ts";
import type { Random } from "../random.ts";
import { askOnce } from "./readers.ts";
import type { SoakServer } from "./server.ts";
import type { Truth } from "./truth.ts";

export type Scene = {
  readonly postgres: TestServer;
  readonly url: string;
  readonly folder: string;
  readonly out: string;
  readonly appKey: string;
  readonly server: SoakServer;
  readonly truth: Truth;
  readonly random: Random;
  /** The numbers of the entries that are edited. */
  readonly edited: readonly number[];
};

export type EventName = "edit" | "stop" | "freeze" | "kill";
export const EVENTS: readonly EventName[] = ["edit", "stop", "freeze", "kill"];

/** Milliseconds of an outage of the database. */
const AWAY = 1_500;

/** Each resolves with what went wrong. */
export const HAPPEN: Readonly<Record<EventName, (scene: Scene) => Promise<string[]>>> = {
  edit,
  stop: async ({ postgres, server }) => {
    await postgres.stop("immediate");
    await sleep(AWAY);
    await postgres.start();
    return isBack(server);
  },
  freeze: async ({ postgres, server }) => {
    postgres.pause();
    await sleep(AWAY);
    postgres.resume();
    return isBack(server);
  },
  // The first worker is never killed: its memory shows whether a process grows over time.
  kill: async ({ server, random }) => {
    await server.killWorker(random.pick(server.workers().slice(1)));
    return [];
  },
};

let edits = 0;

/** Edits an entry, builds, and checks that its answer then has the new title. */
async function edit({ url, folder, out, appKey, truth, random, edited, server }: Scene): Promise<string[]> {
  const { id } = entryOf(random.pick(edited));
  const title = `Edit ${++edits}`;
  await withClient(url, (client) =>
    client.query(
      "UPDATE precast.entries SET data = jsonb_set(data, '{title}', to_jsonb($2::text)), updated_at = now() WHERE id = $1",
      [id, title],
    ),
  );
  await truth.learnLive();
  await runBuild(["--database-url", url], out, folder);
  truth.learnTree();
  const reply = await askUntilWhole(server.url, `/api/v1/articles/${id}`, appKey);
  return reply.includes(`"title":"${title}"`) ? [] : [`the build of ${title} did not show`];
}

async function askUntilWhole(url: string, target: string, appKey: string): Promise<string> {
  let body = "";
  await until("an answer", async () => {
    body = (await askOnce(undefined, url, target, appKey))?.body.toString() ?? "";
    return body !== "";
  });
  return body;
}

/** Waits until live answers work again without any help. */
async function isBack({ url }: SoakServer): Promise<string[]> {
  await until("live answers", async () => {
    const reply = await askOnce(undefined, url, "/api/v1/articles?per_page=1", "soak-watch");
    return reply?.status === 200;
  });
  return [];
}
