/** Counted requests at several sizes: Precast against the program by hand. */
import { checkAgreement } from "../live/agree.ts";
import { askedOf, ROW_TEXTS, type RowName } from "../live/asked.ts";
import { compareSides, type Measure } from "../live/compare.ts";
import { openLibrary } from "../live/library.ts";
import { openSides, type Side, type Sides } from "../live/sides.ts";
import type { LiveOptions } from "../live-options.ts";
import { type Found, figuresOf, type Read, readText } from "../live-result.ts";
import { spreadOf } from "../spread.ts";
import type { Work } from "../work.ts";

/** Seconds for which the requests of a row are checked before they are measured. */
const CHECK = 15;

export async function readsCase(work: Work<LiveOptions>): Promise<Found> {
  const reads: Read[] = [];
  const faults: string[] = [];
  for (const size of work.options.sizes) {
    const library = await openLibrary(work, size);
    const sides = await openSides(work, library);
    try {
      await warmUp(work, sides, size);
      for (const row of work.options.rows) {
        const found = await readRow(work, sides, row, size);
        reads.push(found.read);
        faults.push(...found.faults.map((fault) => `${row}, ${size.toLocaleString("en")} entries: ${fault}`));
      }
    } finally {
      await sides.stop();
    }
  }
  return { reads, notes: [], faults };
}

/** An entry and a list, and for how many seconds each side answers them: Node.js compiles what it has run often. */
const WARMING: readonly RowName[] = ["populate", "eq"];
const WARM_AFTER = 2;

/** Answers requests that are not measured, or the first row would show how slow a server is that has just started. */
async function warmUp({ options }: Work<LiveOptions>, sides: Sides, size: number): Promise<void> {
  const all = [sides.precast, sides.anew, sides.byHand];
  for (const row of WARMING) {
    const { same, took } = await checkAgreement(sides, askedOf(row, size, options.requests), CHECK);
    if (same.length > 0) await compareSides(all, same, took, { ...options, rounds: 1, seconds: WARM_AFTER });
  }
}

async function readRow({ options, say }: Work<LiveOptions>, sides: Sides, row: RowName, size: number) {
  const asked = askedOf(row, size, options.requests);
  const { same, late, different, took } = await checkAgreement(sides, asked, CHECK);
  const lateText = late.length === 0 ? "" : `, ${late.length} not answered in time`;
  say(`reads: ${row} at ${size.toLocaleString("en")}: ${same.length} requests agree${lateText}, ${took.toFixed(1)} ms`);
  const both = same.length > 0;
  // Requests that Precast cannot answer in time are still sent to the program by hand, which may be in time.
  const ran = await compareSides(
    both ? [sides.precast, sides.anew, sides.byHand] : [sides.byHand],
    both ? same : late,
    took,
    options,
  );
  const rounds = (side: Side) => ran.find(({ name }) => name === side.name)?.measures ?? [];
  const [precast, anew, byHand] = [rounds(sides.precast), rounds(sides.anew), rounds(sides.byHand)];
  const ratioOf = (measures: readonly Measure[]) =>
    spreadOf(measures.map(({ perSecond }, index) => perSecond / (byHand[index]?.perSecond ?? Number.NaN)));
  const read: Read = {
    ...{ row, what: ROW_TEXTS[row], size },
    requests: same.length,
    precast: both ? { ...figuresOf(precast), ratio: ratioOf(precast) } : null,
    anew: both ? { ...figuresOf(anew), ratio: ratioOf(anew) } : null,
    byHand: figuresOf(byHand),
  };
  say(`reads: ${readText(read)}`);
  return { read, faults: [...different, ...ran.flatMap(({ faults }) => faults)] };
}
