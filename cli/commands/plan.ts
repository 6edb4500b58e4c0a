/** `precast plan`: tells what a change costs before it is made, and changes nothing. */
import type { App } from "../../shared/api/catalog.ts";
import { readApps } from "../../shared/apps.ts";
import { type CommonName, ConfigError, type Settings } from "../../shared/config.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { noAppText, readChosenApp, withDatabase } from "../database.ts";
import { type Inspection, inspectBuild } from "../plan/inspection.ts";
import { applyModel, readModel, refuseHidden } from "../plan/model.ts";
import { reportPlan, summarizePlan, writePlan } from "../plan/report.ts";
import { openSummary } from "../summary.ts";
import type { Terminal } from "../terminal.ts";
import { describeChanges, importBundle, sayWarnings } from "./import.ts";

const SETTINGS = ["oneApp", "model", "prune", "prices", "planBudget", "maxSize", "summary"] as const;
type PlanSettings = Settings<(typeof SETTINGS)[number] | CommonName>;

export const planCommand = defineCommand({
  name: "plan",
  describes: "tell what a bundle, a changed content type or the next build would change and cost; changes nothing",
  argument: "[bundle]",
  settings: SETTINGS,
  examples: [
    "precast plan content --prices r2 --budget files=20000,usd=5",
    "precast plan --model content/content_types/posts.json",
    'precast plan content --summary "$GITHUB_STEP_SUMMARY"',
  ],
  run: async ({ terminal, now }, settings, bundle) => {
    const { model, planBudget, prices, summary } = settings;
    if (bundle !== "" && model !== null)
      throw new ConfigError(["A bundle has its own content types: leave out --model, or the bundle."]);
    const limits = readLimits(planBudget ?? []);
    if (limits.has("usd") && prices === null) throw new ConfigError(["--budget usd=… has no effect without --prices"]);
    const summarize = openSummary(summary);
    const inspection = await withDatabase(settings, (database) => {
      if (bundle === "") return inspectStored(database, settings, now);
      return inspectBundle(database, bundle, settings, now, terminal);
    });
    if (inspection.apps.length === 0) throw new Error(noAppText(settings));
    const report = reportPlan(inspection, prices, limits);
    terminal.result(writePlan(report, terminal), report);
    for (const table of summarizePlan(report)) summarize(table);
    return report.budget.some(({ over }) => over > 0) ? DIFFERENT : DONE;
  },
});

function readLimits(limits: readonly string[]): ReadonlyMap<string, number> {
  return new Map(limits.map((limit) => limit.split("=")).map(([name = "", most]) => [name, Number(most)]));
}

/** In the transaction of an import, which is then rolled back. */
async function inspectBundle(
  database: Database,
  bundle: string,
  settings: PlanSettings,
  now: () => Date,
  terminal: Terminal,
): Promise<Inspection> {
  const { oneApp, prune } = settings;
  const before = await readApps(database, settings);
  const found: Inspection[] = [];
  const inspect = async (session: Session, key: string) => {
    if (oneApp !== null && oneApp !== key)
      throw new ConfigError([`--app is ${oneApp}, but ${bundle} is a bundle of ${key}.`]);
    found.push(await inspectBuild(database, session, { ...settings, now, before, apps: [key] }));
  };
  const imported = await importBundle(database, bundle, { prune, dryRun: true, inspect });
  sayWarnings(terminal, imported);
  terminal.say(`The import: ${describeChanges(imported)}`);
  return found[0] as Inspection;
}

/** In a transaction that only reads. */
function inspectStored(database: Database, settings: PlanSettings, now: () => Date): Promise<Inspection> {
  const { oneApp, prune } = settings;
  const model = settings.model === null ? null : readModel(settings.model);
  return database.transaction("read", async (session) => {
    const options = { ...settings, now, before: await readApps(session, settings) };
    if (model === null) return inspectBuild(database, session, { ...options, apps: oneApp === null ? null : [oneApp] });
    const chosen = await readChosenApp(session, oneApp, settings);
    await refuseHidden(session, chosen, model);
    const changeApp = (app: App) => (app.key === chosen.key ? applyModel(app, model, prune) : app);
    return inspectBuild(database, session, { ...options, apps: [chosen.key], changeApp });
  });
}
