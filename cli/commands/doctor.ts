/** `precast doctor`: reports what to improve in the database, the content and the requests, and applies safe fixes. */
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { runChecks } from "../doctor/check-run.ts";
import { isAdvice } from "../doctor/finding.ts";
import { applyFixes } from "../doctor/fixes.ts";
import { reportText } from "../doctor/report.ts";

/** Milliseconds that reading the facts rarely takes. */
const PATIENCE = 10_000;
const STILL_WAITING =
  "The database has not told everything after 10 seconds. If it is not large, another session may hold a lock on its tables: SELECT * FROM pg_stat_activity WHERE wait_event_type = 'Lock' shows who waits.";

export const doctorCommand = defineCommand({
  name: "doctor",
  describes:
    "recommend changes to the database, content and requests, and say what each gains; exit code 2 when there is advice",
  argument: null,
  settings: ["fix", "connections", "workers"],
  examples: ["precast doctor", "precast doctor --fix"],
  run: async ({ terminal, now }, settings) => {
    const { fixed, left } = await withDatabase(settings, async (database) => {
      const check = (names?: readonly string[]) => runChecks(database, settings, now(), names);
      const waiting = setTimeout(() => terminal.warn(STILL_WAITING), PATIENCE);
      const findings = await check().finally(() => clearTimeout(waiting));
      return settings.fix ? applyFixes(database, findings, terminal, check) : { fixed: [], left: findings };
    });
    terminal.result(reportText(left, terminal), { findings: left, fixed });
    return left.some(isAdvice) ? DIFFERENT : DONE;
  },
});
