/** Defines what a setting is, and the schemas that turn its text into a typed value or say which values are valid. */
import * as v from "valibot";
import { APP_KEY, isMediaBaseUrl } from "../api/catalog.ts";
import { isDate } from "../api/value.ts";

export type Setting<T> = {
  /** In commander's syntax: `--out <dir>`. Null for a secret: other users of the machine can read command lines. */
  readonly flags: string | null;
  readonly env: string;
  /** A second variable, which is read when the first is not set. */
  readonly fallbackEnv?: string;
  readonly describes: string;
  readonly schema: v.GenericSchema<unknown, T>;
};

export const orNull = <T>(schema: v.GenericSchema<unknown, T>): v.GenericSchema<unknown, T | null> =>
  v.pipe(
    v.optional(schema),
    v.transform((value) => value ?? null),
  );

/** `given` is the default, as the text that a user would give. */
export const orElse = <T>(schema: v.GenericSchema<unknown, T>, given: string): v.GenericSchema<unknown, T> =>
  v.optional(schema, given);

export const optionalText = orNull(v.string());

export const setting = <T>(
  flags: string,
  env: string,
  describes: string,
  schema: v.GenericSchema<unknown, T>,
): Setting<T> => ({ flags, env, describes, schema });

/** A credential: read from the environment only, and never printed. */
export const secret = (env: string, describes: string): Setting<string | null> => ({
  flags: null,
  env,
  describes,
  // Trimmed, because a secret that was read from a file often ends with a line break. Checked here, because the HTTP
  // client's error for an invalid header value would contain the secret.
  schema: orNull(v.pipe(v.string(), v.trim(), v.regex(/^[\x20-\x7e]+$/, "must be one line of printable ASCII"))),
});

export const flag = v.pipe(
  v.optional(v.union([v.boolean(), v.picklist(["true", "1", "false", "0"])], "must be true or false")),
  v.transform((value) => value === true || value === "true" || value === "1"),
);

/** `error` says which values are valid: "must be …". */
export const matching = (pattern: RegExp, error: string) => v.pipe(v.string(), v.regex(pattern, error));

export const folder = matching(/./s, "must be the name of a folder");

export function whole(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  return v.pipe(matching(/^\d+$/, error), v.transform(Number), v.minValue(least, error), v.maxValue(most, error));
}

/** Several values: from a repeated flag, or in one text, separated by what `between` matches. */
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

export const appKey = matching(
  APP_KEY,
  "must be an app key: at most 128 letters, digits, '_' and '-', beginning with a letter or digit",
);
export const appKeys = v.pipe(several(/[\s,]+/, appKey), v.minLength(1, "must name at least one app"));
export const day = v.pipe(v.string(), v.check(isDate, "must be a date such as 2026-01-20"));
export const host = matching(/\S/, "must be an address such as 127.0.0.1, 0.0.0.0 or ::");
export const webAddress = v.pipe(
  v.string(),
  v.check(
    isWebAddress,
    "must be an address such as https://media.example.com:8443, without a user name or password in it",
  ),
);
/** Refuses a user name or password: messages print the address, and neither would be sent. `{…}` is a placeholder. */
function isWebAddress(address: string): boolean {
  const filled = address.replaceAll("{path}", "/").replace(/\{\w+\}/g, "x");
  if (!/^https?:\/\/[^/\s]+\S*$/.test(filled) || !URL.canParse(filled)) return false;
  const { username, password } = new URL(filled);
  return username === "" && password === "";
}
export const mediaAddress = v.pipe(
  v.string(),
  v.check(isMediaBaseUrl, "must be an address such as https://media.example.com, without ? and #"),
);
export const optionalAddress = orNull(webAddress);
/** Without trailing slashes: paths are appended to it. */
export const optionalBase = orNull(
  v.pipe(
    webAddress,
    v.transform((address) => address.replace(/\/+$/, "")),
  ),
);
/** A name or id that an outside service has given and that becomes part of URLs. */
export const optionalName = (example: string) =>
  orNull(matching(/^[\w-]+$/, `must be a name such as ${example}, of letters, digits, '_' and '-'`));
export const method = matching(/^[A-Z]+$/, "must be an HTTP method in capital letters, such as POST");
/** Not only blanks, which would be sent as an empty header. */
export const header = matching(/^(?=.*\S)[\x20-\x7e]+$/, "must be a header value of printable ASCII characters");

/** An address without a host, as in `user@/name`, means a Unix socket; URL.canParse would refuse it. */
export const postgresUrl = v.pipe(
  matching(/^postgres(ql)?:\/\//, "must begin with postgres:// or postgresql://"),
  v.check(
    (url) => URL.canParse(url.replace("@/", "@localhost/")),
    "must be an address such as postgres://user:password@host:5432/name; in a password, / is written %2F, # %23, ? %3F, " +
      "@ %40 and % %25",
  ),
);
