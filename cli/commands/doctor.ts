/** `precast doctor`: reports what to improve in the database, the content and the requests, and applies safe fixes. */
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { runChecks } from "../doctor/check-run.ts";
import { isAdvice } from "../doctor/finding.ts";
import { applyFixes } from "../doctor/fixes.ts";
import { reportText } from "../doctor/report.ts";

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
      const findings = await check();
      return settings.fix ? applyFixes(database, findings, terminal, check) : { fixed: [], left: findings };
    });
    terminal.result(reportText(left, terminal), { findings: left, fixed });
    return left.some(isAdvice) ? DIFFERENT : DONE;
  },
});
