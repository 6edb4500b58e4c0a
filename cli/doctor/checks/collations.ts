/** Finds collations that have changed since the indexes on them were built: such an index is in the wrong order. */
import type { Database } from "../../../shared/database/database.ts";
import { type ChangedCollation, changedCollations } from "../../../shared/schema/collations.ts";
import { defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

type Facts = { readonly kind: Database["kind"]; readonly changed: readonly ChangedCollation[] };

export const collationsCheck = defineCheck({
  name: "collations",
  gather: async ({ database }): Promise<Facts> => ({
    kind: database.kind,
    changed: await changedCollations(database),
  }),
  judge: ({ kind, changed }) => changed.map((one) => findingOf(one, kind)),
});

function findingOf({ name, before, now }: ChangedCollation, kind: Facts["kind"]): Finding {
  const [reindex, refresh] = ["REINDEX SCHEMA CONCURRENTLY precast", `ALTER COLLATION ${name} REFRESH VERSION`];
  const embeddedRemedy = {
    remedy: "Run `precast doctor --fix`, start servers anew, and verify the tree.",
    fix: [reindex, refresh],
  };
  // No fix: REFRESH VERSION would hide that other indexes of the database with this collation are out of order too.
  const postgresRemedy = {
    remedy:
      `Have the owner run ${reindex}; reindex what else of this database has that order; then have a superuser run ` +
      `${refresh}; start servers anew, and verify the tree. Writers go on meanwhile.`,
    fix: null,
  };
  return {
    kind: "advice",
    subject: `The order of texts (${name})`,
    problem: `The indexes were made with version ${before} of it, and the server has ${now} now: entries whose place is another by this one are not found.`,
    gain: "Live answers lack no entries, and have them in the right order.",
    ...(kind === "embedded" ? embeddedRemedy : postgresRemedy),
  };
}
