/** `precast config`: prints the settings of all commands, and where each value comes from. */
import { SETTINGS, type TracedSetting, traceSettings } from "../../shared/config.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { withoutPasswords } from "../secrets.ts";

export const configCommand = defineCommand({
  name: "config",
  describes:
    "print every setting, its value, and where that comes from: a flag, the environment, .env, a file, or nowhere",
  argument: null,
  settings: [],
  database: "unused",
  examples: ["precast config", "precast config --json"],
  details: () => FILES,
  run: async ({ terminal, given }) => {
    const settings = traceSettings(given).map((setting) => ({
      name: setting.key,
      value: hideSecrets(setting),
      ...findPlace(setting, given),
    }));
    const { file, dotenv } = given;
    const rows = settings.map(({ name, value, from, place }) => [
      name,
      showValue(value),
      from === ".env" ? `.env (${place})` : (place ?? from),
    ]);
    terminal.result(terminal.table(["Setting", "Value", "From"], rows), { file: file?.name ?? null, dotenv, settings });
    return DONE;
  },
});

const FILES = `
Files in the current folder:
  precast.config.json  settings by the names that this command prints; precast.config.mjs, .js and,
                       with Node.js 22.18 or newer, .ts export such an object as default
  .env                 variables that the environment lacks
A flag counts more than the environment, that more than .env, and that more than precast.config.json.
`;

/** What others must not see on a screen or in the log of a CI run. */
function hideSecrets({ name, value }: TracedSetting): unknown {
  if (SETTINGS[name].flags === null) return value === null ? null : "…";
  if (Array.isArray(value)) return value.map((one) => withoutPasswords(String(one)));
  return typeof value === "string" ? withoutPasswords(value) : value;
}

function showValue(value: unknown): string {
  return value === null ? "" : Array.isArray(value) ? value.join(" ") : String(value);
}

/** `place` is the name of a flag, a variable or a file. */
function findPlace({ from, place }: TracedSetting, { file, dotenv }: Context["given"]) {
  if (from === "default") return { from, place: null };
  if (from === "file") return { from, place: file?.name ?? null };
  return { from: from === "environment" && dotenv.includes(place) ? ".env" : from, place };
}
