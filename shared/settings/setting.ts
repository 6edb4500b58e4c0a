/** What a setting is, and how the values of settings are read: text in, a typed value or what would be right out. */
import * as v from "valibot";
import { APP_KEY } from "../catalog.ts";
import { isDate } from "../value.ts";

export type Setting<T> = {
  /** As commander spells flags: `--out <dir>`. Null for a secret: others of the machine can read a command line. */
  readonly flags: string | null;
  readonly env: string;
  /** A second variable, for where the first is not set. */
  readonly envToo?: string;
  readonly describes: string;
  readonly schema: v.GenericSchema<unknown, T>;
};

export const orNull = <T>(schema: v.GenericSchema<unknown, T>): v.GenericSchema<unknown, T | null> =>
  v.pipe(
    v.optional(schema),
    v.transform((value) => value ?? null),
  );

/** The default is text, as it would be given. */
export const orElse = <T>(schema: v.GenericSchema<unknown, T>, given: string): v.GenericSchema<unknown, T> =>
  v.optional(schema, given);

export const optionalText = orNull(v.string());

export const setting = <T>(
  flags: string,
  env: string,
  describes: string,
  schema: v.GenericSchema<unknown, T>,
): Setting<T> => ({ flags, env, describes, schema });

/** What proves who somebody is: in the environment alone, and never printed. */
export const secret = (env: string, describes: string): Setting<string | null> => ({
  flags: null,
  env,
  describes,
  // A file that it comes from ends its line. What is no value of a header would be printed by what refuses it.
  schema: orNull(v.pipe(v.string(), v.trim(), v.regex(/^[\x20-\x7e]+$/, "must be one line of printable ASCII"))),
});

export const flag = v.pipe(
  v.optional(v.union([v.boolean(), v.picklist(["true", "1", "false", "0"])], "must be true or false")),
  v.transform((value) => value === true || value === "true" || value === "1"),
);

/** `error` says what would be right: "must be …". */
export const matching = (pattern: RegExp, error: string) => v.pipe(v.string(), v.regex(pattern, error));

export const folder = matching(/./s, "must be the name of a folder");

export function whole(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  return v.pipe(matching(/^\d+$/, error), v.transform(Number), v.minValue(least, error), v.maxValue(most, error));
}

/** Several by repeating the flag, or in one text with something between them. */
export const several = (between: RegExp, one: v.GenericSchema<string, string>) =>
  v.pipe(
    v.union([
      v.array(v.string()),
      v.pipe(
        v.string(),
        v.transform((text) => text.split(between).filter((part) => part !== "")),
      ),
    ]),
    v.array(one),
  );

export const appKey = matching(APP_KEY, "must be an app key: letters, digits, '_' and '-', at most 128");
export const appKeys = v.pipe(several(/[\s,]+/, appKey), v.minLength(1, "must name at least one app"));
export const day = v.pipe(v.string(), v.check(isDate, "must be a date such as 2026-01-20"));
export const host = matching(/\S/, "must be an address such as 127.0.0.1, 0.0.0.0 or ::");
export const webAddress = v.pipe(
  v.string(),
  v.check(isAskable, "must be an address such as https://media.example.com:8443, without a name or password in it"),
);
/** Messages name it, and no name or password in it would be sent. `{…}` stands for what is asked. */
function isAskable(address: string): boolean {
  const filled = address.replaceAll("{path}", "/").replace(/\{\w+\}/g, "x");
  if (!/^https?:\/\/[^/\s]+\S*$/.test(filled) || !URL.canParse(filled)) return false;
  const { username, password } = new URL(filled);
  return username === "" && password === "";
}
/** The names of files are put behind it. */
export const mediaAddress = matching(
  /^https?:\/\/[^/\s?#][^\s?#]*$/,
  "must be an address such as https://media.example.com, without ? and #",
);
export const optionalAddress = orNull(webAddress);
/** Paths are put behind it. */
export const optionalBase = orNull(
  v.pipe(
    webAddress,
    v.transform((address) => address.replace(/\/+$/, "")),
  ),
);
/** A name that somebody else has given, which stands in addresses. */
export const optionalName = (example: string) =>
  orNull(matching(/^[\w-]+$/, `must be a name such as ${example}, of letters, digits, '_' and '-'`));
export const method = matching(/^[A-Z]+$/, "must be a method such as POST");
export const header = matching(/^[\x20-\x7e]+$/, "must be the value of a header");

/** Without a name of a host, after `@` as well, the address is that of a socket. */
export const postgresUrl = v.pipe(
  matching(/^postgres(ql)?:\/\//, "must begin with postgres:// or postgresql://"),
  v.check(
    (url) => URL.canParse(url.replace("@/", "@localhost/")),
    "must be an address such as postgres://user:password@host:5432/name; in a password / is written %2F, # %23, ? %3F, " +
      "@ %40 and % %25",
  ),
);
