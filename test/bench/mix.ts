/** A mix of free requests as clients send them, picked from what a tree holds: seeded, so the same in every run. */
import { join } from "node:path";
import { type Address, addressOfFile, nameFile, nameFolder, writeRequest } from "../../shared/api/address.ts";
import { type Random, randomFrom } from "./random.ts";
import { filesBelow } from "./tree.ts";

export type Ask = {
  readonly app: string;
  readonly target: string;
  /** Where the answer lies in the tree. */
  readonly file: string;
  /** Sent with the ETag of an earlier answer. */
  readonly conditional: boolean;
};

/** How many of a hundred requests are of each kind. */
const WEIGHTS: Readonly<Record<Address["kind"], number>> = {
  entry: 60,
  page: 12,
  filter: 12,
  sort: 8,
  catalog: 4,
  schema: 4,
};
/** One in this number of requests is conditional. */
const CONDITIONAL = 10;

type Kinds = Map<Address["kind"], Address[]>;

export function pickAsks(out: string, apps: readonly string[], count: number): Ask[] {
  const random = randomFrom(20);
  const kinds = apps.map((app) => ({ app, kinds: addressesBelow(join(out, nameFolder(app))) }));
  const wheel = Object.entries(WEIGHTS).flatMap(([kind, weight]) => Array<Address["kind"]>(weight).fill(kind as never));
  return Array.from({ length: count }, () => pickAsk(random, random.pick(kinds), random.pick(wheel)));
}

function pickAsk(random: Random, { app, kinds }: { app: string; kinds: Kinds }, kind: Address["kind"]): Ask {
  const address = random.pick(kinds.get(kind) ?? []);
  return {
    app,
    target: writeRequest(address),
    file: `${nameFolder(app)}/${nameFile(address)}`,
    conditional: random.below(CONDITIONAL) === 0,
  };
}

/** In an order that does not depend on the file system. */
function addressesBelow(folder: string): Kinds {
  const kinds: Kinds = new Map();
  for (const path of [...filesBelow(folder)].sort()) {
    const address = addressOfFile(path);
    if (address === null) continue;
    const same = kinds.get(address.kind);
    if (same === undefined) kinds.set(address.kind, [address]);
    else same.push(address);
  }
  return kinds;
}
