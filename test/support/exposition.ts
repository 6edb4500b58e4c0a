/** Reads the text format of Prometheus as strictly as its own tools do. */

export type Sample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};
export type Family = { readonly type: string; readonly help: string; readonly samples: readonly Sample[] };

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"`;
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?\\})? (-?\\d[^ ]*|[Nn]a[Nn]|[+-]Inf)$`);
const SUFFIXES: Record<string, readonly string[]> = {
  histogram: ["_bucket", "_sum", "_count"],
  summary: ["", "_sum", "_count"],
};

/** Throws for an invalid line, for a sample outside its family, and for a family or series that occurs twice. */
export function readExposition(text: string): Map<string, Family> {
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>();
  const series = new Set<string>();
  let current = "";
  if (!text.endsWith("\n")) throw new Error("The last line is not ended");
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      if (kind === "HELP") {
        if (families.has(name)) throw new Error(`${name} is told twice`);
        families.set(name, { type: "", help: rest, samples: [] });
        current = name;
      } else {
        if (name !== current || !/^(counter|gauge|histogram|summary)$/.test(rest))
          throw new Error(`Not a type: ${line}`);
        Object.assign(families.get(name) ?? {}, { type: rest });
      }
      continue;
    }
    const sample = readSample(line);
    const family = families.get(current);
    const allowed = (SUFFIXES[family?.type ?? ""] ?? [""]).map((suffix) => current + suffix);
    if (family === undefined || !allowed.includes(sample.name)) throw new Error(`Not of ${current}: ${line}`);
    const id = line.slice(0, line.lastIndexOf(" "));
    if (series.has(id)) throw new Error(`${id} is told twice`);
    series.add(id);
    family.samples.push(sample);
  }
  return families;
}

function readSample(line: string): Sample {
  const match = SAMPLE.exec(line);
  if (match === null) throw new Error(`Not a sample: ${line}`);
  const [, name = "", labels = "", value = ""] = match;
  const pairs = [...labels.matchAll(/([^=,]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = "", text = ""]) => [key, text]);
  const number = value.endsWith("Inf") ? Number(`${value}inity`) : Number(value);
  if (Number.isNaN(number) && value.toLowerCase() !== "nan") throw new Error(`Not a number: ${line}`);
  return { name, labels: Object.fromEntries(pairs), value: number };
}
