/** `precast doctor`: reports what to improve in the database, the content and the requests, and applies safe fixes. */
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { examine } from "../doctor/examination.ts";
import { isAdvice } from "../doctor/finding.ts";
import { reportText } from "../doctor/report.ts";
import { treat } from "../doctor/treatment.ts";

export const doctorCommand = defineCommand({
  name: "doctor",
  describes: "say what to change in database, content and requests, and what it brings; exit 2 when there is advice",
  argument: null,
  settings: ["fix", "connections"],
  examples: ["precast doctor", "precast doctor --fix"],
  run: async ({ terminal, now }, settings) => {
    const { fixed, left } = await withDatabase(settings, async (database) => {
      const found = await examine(database, settings, now());
      return settings.fix ? treat(database, found, terminal) : { fixed: [], left: found };
    });
    terminal.result(reportText(left, terminal), { findings: left, fixed });
    return left.some(isAdvice) ? DIFFERENT : DONE;
  },
});
