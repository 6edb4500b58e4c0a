/** Counted requests at several sizes: Precast against the program by hand. */
import { checkAgreement } from "../live/agree.ts";
import { askedOf, ROW_TEXTS, type RowName } from "../live/asked.ts";
import { compareSides } from "../live/compare.ts";
import { openLibrary } from "../live/library.ts";
import { openSides, type Sides } from "../live/sides.ts";
import type { LiveOptions } from "../live-options.ts";
import { type Found, figuresOf, type Read } from "../live-result.ts";
import { spreadOf } from "../spread.ts";
import type { Work } from "../work.ts";

/** Seconds for which the requests of a row are checked. */
const CHECK = 15;

export async function readsCase(work: Work<LiveOptions>): Promise<Found> {
  const reads: Read[] = [];
  const faults: string[] = [];
  for (const size of work.options.sizes) {
    const library = await openLibrary(work, size);
    const sides = await openSides(work, library);
    try {
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

async function readRow({ options, say }: Work<LiveOptions>, sides: Sides, row: RowName, size: number) {
  const named = { row, what: ROW_TEXTS[row], size };
  const { same, different, refused, took } = await checkAgreement(sides, askedOf(row, size, options.requests), CHECK);
  const late = refused === 0 ? "" : `, ${refused} not answered in time`;
  say(`reads: ${row} at ${size.toLocaleString("en")}: ${same.length} requests agree${late}, ${took.toFixed(1)} ms`);
  if (same.length === 0) {
    const read: Read = { ...named, requests: 0, precast: null, byHand: null, ratio: null };
    return { read, faults: different };
  }
  const compared = await compareSides(sides, same, took, options);
  const ratios = compared.precast.map(({ perSecond }, index) => perSecond / (compared.byHand[index]?.perSecond ?? NaN));
  const read: Read = {
    ...named,
    requests: same.length,
    precast: figuresOf(compared.precast),
    byHand: figuresOf(compared.byHand),
    ratio: spreadOf(ratios),
  };
  return { read, faults: [...different, ...compared.faults] };
}
