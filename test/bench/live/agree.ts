/** Checks, before anything is measured, that Precast and the program by hand give the same answers. */
import { Agent, request } from "node:http";
import { isDeepStrictEqual } from "node:util";
import type { Asked } from "./asked.ts";
import { APP } from "./definition.ts";
import type { Side, Sides } from "./sides.ts";

export type Checked = {
  /** The requests to which both gave the same answer. */
  readonly same: readonly Known[];
  /** The requests that Precast could not answer in time. */
  readonly late: readonly Known[];
  readonly different: readonly string[];
  /** The median milliseconds of a request that has hardly any others beside it. */
  readonly took: number;
};

/** A request, and the lengths of its answers; null for one that did not come in time. */
export type Known = { readonly asked: Asked; readonly lengths: Readonly<Record<Side["name"], number | null>> };

type Answer = { readonly status: number; readonly body: string; readonly length: number; readonly took: number };

/** At least LEAST requests are checked, however long it takes, and LANES at a time. */
const LEAST = 20;
const LANES = 2;
/** After this number of late answers and none in time, no more requests are checked. */
const HOPELESS = 6;

/** Checks requests until all are checked, or the seconds are over. */
export async function checkAgreement(sides: Sides, all: readonly Asked[], seconds: number): Promise<Checked> {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 * LANES });
  const deadline = performance.now() + seconds * 1_000;
  const same: Known[] = [];
  const late: Known[] = [];
  const different: string[] = [];
  const times: number[] = [];
  let next = 0;
  const goesOn = () => (next < LEAST || performance.now() < deadline) && (same.length > 0 || late.length < HOPELESS);
  const lane = async () => {
    while (next < all.length && goesOn()) {
      const asked = all[next++] as Asked;
      const ours = await ask(sides.anew, asked, agent);
      const theirs = await ask(sides.byHand, asked, agent);
      times.push(ours.took, theirs.took);
      const lengths = { Precast: ours.length, anew: ours.length, "by hand": theirs.length };
      if (isTooLate(ours.status)) late.push({ asked, lengths: { ...lengths, Precast: null, anew: null } });
      else if (agree(ours, theirs)) same.push({ asked, lengths });
      else different.push(differenceText(asked, ours, theirs));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  agent.destroy();
  times.sort((a, b) => a - b);
  return { same, late, different, took: times[times.length >> 1] ?? 0 };
}

/** Timed out, or refused because of overload: neither is a wrong answer. */
function isTooLate(status: number): boolean {
  return status === 503 || status === 504;
}

function agree(ours: Answer, theirs: Answer): boolean {
  if (ours.status !== 200 || theirs.status !== 200) return false;
  return isDeepStrictEqual(JSON.parse(ours.body), JSON.parse(theirs.body));
}

const SHOWN = 160;

/** The parts of both answers around their first difference. */
function differenceText({ precast, byHand }: Asked, ours: Answer, theirs: Answer): string {
  const [one, other] = [compact(ours), compact(theirs)];
  let place = 0;
  while (place < one.length && one[place] === other[place]) place += 1;
  const part = (text: string) => text.slice(Math.max(0, place - SHOWN / 2)).slice(0, SHOWN);
  return `${precast}\n  says ${ours.status} …${part(one)}…\n  but ${byHand}\n  says ${theirs.status} …${part(other)}…`;
}

/** Without the spaces that PostgreSQL puts between items. */
function compact({ body }: Answer): string {
  return JSON.stringify(JSON.parse(body));
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
