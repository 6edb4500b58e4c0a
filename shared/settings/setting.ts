/** What a setting is, and how the values of settings are read: text in, a typed value or what would be right out. */
import { z } from "zod";
import { APP_KEY } from "../catalog.ts";

export type Setting<T> = {
  /** As commander spells flags: `--out <dir>`. Null for a secret: others of the machine can read a command line. */
  readonly flags: string | null;
  readonly env: string;
  /** A second variable, for where the first is not set. */
  readonly envToo?: string;
  readonly describes: string;
  readonly schema: z.ZodType<T>;
};

export const optionalText = z
  .string()
  .optional()
  .transform((text) => text ?? null);

export const setting = <T>(flags: string, env: string, describes: string, schema: z.ZodType<T>): Setting<T> => ({
  flags,
  env,
  describes,
  schema,
});

/** What proves who somebody is: in the environment alone, and never printed. */
export const secret = (env: string, describes: string): Setting<string | null> => ({
  flags: null,
  env,
  describes,
  schema: optionalText,
});

export const flag = z
  .union([z.boolean(), z.enum(["true", "1", "false", "0"])], { error: "must be true or false" })
  .optional()
  .transform((value) => value === true || value === "true" || value === "1");

export const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`);

export const appKey = z.string().regex(APP_KEY, "must be an app key: letters, digits, '_' and '-', at most 128");
export const appKeys = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(/[\s,]+/).filter((key) => key !== ""))])
  .pipe(z.array(appKey));
export const day = z.iso.date("must be a date such as 2026-01-20");
export const webAddress = z
  .string()
  .regex(/^https?:\/\/[^/\s]+\S*$/, "must be an address such as https://media.example.com");
export const optionalAddress = webAddress.optional().transform((url) => url ?? null);
export const method = z.string().regex(/^[A-Z]+$/, "must be a method such as POST");
export const header = z.string().regex(/^[\x20-\x7e]+$/, "must be the value of a header");

export const POSTGRES_URL = /^postgres(ql)?:\/\//;
export const NO_POSTGRES_URL = "must begin with postgres:// or postgresql://";
