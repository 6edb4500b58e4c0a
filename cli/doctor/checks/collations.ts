/** Finds collations that have changed since the indexes on them were built: such an index is in the wrong order. */
import type { Database } from "../../../shared/database/database.ts";
import { type ChangedCollation, changedCollations } from "../../../shared/schema/drift.ts";
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
    remedy: "Run `precast doctor --fix`, restart the servers, and run `precast verify`.",
    fix: [reindex, refresh],
  };
  // No fix: REFRESH VERSION would hide that other indexes of the database with this collation are out of order too.
  const postgresRemedy = {
    remedy:
      `Have the owner of the schema run ${reindex}. Reindex whatever else in this database uses the collation. Then have a superuser run ` +
      `${refresh}, restart the servers, and run \`precast verify\`. The two statements do not block writers.`,
    fix: null,
  };
  return {
    kind: "advice",
    subject: `Collation ${name}`,
    problem: `The indexes were built with version ${before} of the collation, but the server now has version ${now}. Queries may miss entries whose position differs between the two versions.`,
    gain: "Live answers contain all entries, in the right order.",
    ...(kind === "embedded" ? embeddedRemedy : postgresRemedy),
  };
}
