/** Do both sides answer the same? Asked before anything is measured. */
import { Agent, request } from "node:http";
import { isDeepStrictEqual } from "node:util";
import type { Asked } from "./asked.ts";
import { APP } from "./definition.ts";
import type { Side, Sides } from "./sides.ts";

export type Checked = {
  /** Those to which both gave the same, with the lengths of their answers. */
  readonly same: readonly Same[];
  readonly different: readonly string[];
  /** Those that one of them could not answer in time. */
  readonly refused: number;
  /** Milliseconds of a request that is alone: the median. */
  readonly took: number;
};

export type Same = { readonly asked: Asked; readonly lengths: Readonly<Record<Side["name"], number>> };

type Answer = { readonly status: number; readonly body: string; readonly length: number; readonly took: number };

/** At least so many are checked, however long it takes; and so many at once. */
const LEAST = 20;
const LANES = 2;

/** Checks until all are, or the seconds are over. */
export async function checkAgreement(sides: Sides, all: readonly Asked[], seconds: number): Promise<Checked> {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 * LANES });
  const deadline = performance.now() + seconds * 1_000;
  const same: Same[] = [];
  const different: string[] = [];
  const times: number[] = [];
  let refused = 0;
  let next = 0;
  const lane = async () => {
    while (next < all.length && (next < LEAST || performance.now() < deadline)) {
      const asked = all[next++] as Asked;
      const ours = await ask(sides.precast, asked, agent);
      const theirs = await ask(sides.byHand, asked, agent);
      times.push(ours.took, theirs.took);
      if (isRefusal(ours.status)) refused += 1;
      else if (agree(ours, theirs)) same.push({ asked, lengths: { Precast: ours.length, "by hand": theirs.length } });
      else different.push(differenceText(asked, ours, theirs));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  agent.destroy();
  times.sort((a, b) => a - b);
  return { same, different, refused, took: times[times.length >> 1] ?? 0 };
}

/** There was no time for it, or no room. */
export function isRefusal(status: number): boolean {
  return status === 503 || status === 504;
}

function agree(ours: Answer, theirs: Answer): boolean {
  if (ours.status !== 200 || theirs.status !== 200) return false;
  return isDeepStrictEqual(JSON.parse(ours.body), JSON.parse(theirs.body));
}

const SHOWN = 300;

function differenceText({ precast, byHand }: Asked, ours: Answer, theirs: Answer): string {
  const text = ({ status, body }: Answer) => `${status} ${body.slice(-SHOWN)}`;
  return `${precast}: ${text(ours)}\n  but ${byHand}: ${text(theirs)}`;
}

function ask({ served, target }: Side, asked: Asked, agent: Agent): Promise<Answer> {
  const { hostname, port } = new URL(served.url);
  const options = { hostname, port, path: target(asked), headers: { "X-App-Key": APP }, agent };
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    request(options, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
      incoming.on("end", () => {
        const body = Buffer.concat(chunks);
        const took = performance.now() - begun;
        resolve({ status: incoming.statusCode ?? 0, body: body.toString(), length: body.length, took });
      });
    })
      .on("error", reject)
      .end();
  });
}
