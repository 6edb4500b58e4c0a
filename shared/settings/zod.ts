/** Schemas for what comes from outside: the library zod, and the kinds of values that several schemas have in common. */
import * as z from "zod";

/** A value that may be left out, or null, and is null then. */
export const optional = <T extends z.ZodType>(schema: T) => schema.nullable().default(null);

/** `error` says which texts are valid. */
export const matching = (pattern: RegExp, error: string) => z.string(error).regex(pattern, error);

const A_FLAG = "must be true or false";
/** A flag of the command line, or of an environment variable. */
export const flag = () =>
  z
    .union([z.boolean(), z.stringbool({ truthy: ["true", "1"], falsy: ["false", "0"], case: "sensitive" })], A_FLAG)
    .default(false);

/** The text of a whole number. */
export function integer(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  return matching(/^\d+$/, error).pipe(z.coerce.number<string>().min(least, error).max(most, error));
}

/** Several texts: as an array, or in one text, separated by what `between` matches. */
export const several = (between: RegExp, one: z.ZodType<string>) =>
  z.preprocess(
    (given) => (typeof given === "string" ? given.split(between).filter((part) => part !== "") : given),
    z.array(one),
  );

/** A schema that is made when it is first needed: many commands start and end without it. */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The value of a JSON text; null when the text is broken or is not what the schema says. */
export function parseJson<T extends z.ZodType>(text: string, schema: T): z.output<T> | null {
  try {
    return schema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
