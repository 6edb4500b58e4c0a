/** JSON for people, folded: only what is open is on the page, so that no answer is too long for it. */
import { useMemo, useState } from "preact/hooks";
import { readUuid } from "../../../shared/api/value.ts";
import { formatCounted } from "../../../shared/text.ts";

/** What a text of the JSON leads to, by the names above it; null when it leads nowhere. */
export type FindLink = (path: readonly string[], value: string) => (() => void) | null;

/** Characters that are shown of one text, and parts of an array or object that are shown at once. */
const MOST = { characters: 2_000, parts: 100 };

export function Json({ text, findLink }: { readonly text: string; readonly findLink: FindLink }) {
  const value = useMemo(() => parseExactly(text), [text]);
  return (
    <div class="json code">
      <Value value={value} path={[]} findLink={findLink} />
    </div>
  );
}

/** Numbers keep the digits that a double would lose, in browsers that can tell them. */
function parseExactly(text: string): unknown {
  const { rawJSON } = JSON as unknown as { readonly rawJSON?: (text: string) => unknown };
  const keepDigits = (_: string, value: unknown, context?: { readonly source: string }) =>
    typeof value === "number" && context !== undefined && String(value) !== context.source
      ? rawJSON?.(context.source)
      : value;
  return JSON.parse(text, rawJSON === undefined ? undefined : (keepDigits as Parameters<typeof JSON.parse>[1]));
}

type ValueProps = { readonly value: unknown; readonly path: readonly string[]; readonly findLink: FindLink };

function Value({ value, path, findLink }: ValueProps) {
  const parts = listParts(value);
  if (parts === null) return <Leaf value={value} path={path} findLink={findLink} />;
  return <Branch parts={parts} isArray={Array.isArray(value)} path={path} findLink={findLink} />;
}

/** Null for what has no parts. A number that keeps its digits is an object without a prototype. */
function listParts(value: unknown): [string, unknown][] | null {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) === null) return null;
  return Object.entries(value);
}

type BranchProps = Omit<ValueProps, "value"> & {
  readonly parts: readonly [string, unknown][];
  readonly isArray: boolean;
};

/** What has no name, and what is right below it, is open from the start. */
function Branch({ parts, isArray, path, findLink }: BranchProps) {
  const [open, setOpen] = useState(path.length < 2);
  const [shown, setShown] = useState(MOST.parts);
  const rest = parts.length - shown;
  return (
    <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Name of={path.at(-1)} />
        <span class="quiet">{isArray ? `[${formatCounted(parts.length, "item")}]` : summarise(parts)}</span>
      </summary>
      {open ? (
        <ul>
          {parts.slice(0, shown).map(([name, value]) => (
            <li key={name}>
              <Value value={value} path={[...path, name]} findLink={findLink} />
            </li>
          ))}
          {rest > 0 ? (
            <li>
              <button type="button" onClick={() => setShown(shown + 10 * MOST.parts)}>
                {formatCounted(rest, "more item")}
              </button>
            </li>
          ) : null}
        </ul>
      ) : null}
    </details>
  );
}

/** The first values of an object, by which one entry is told from another. */
function summarise(parts: readonly [string, unknown][]): string {
  const isId = (value: unknown) => typeof value === "string" && readUuid(value) !== null;
  const simple = parts.filter(([, value]) => value !== null && listParts(value) === null && !isId(value));
  const values = simple.slice(0, 3).map(([, value]) => shorten(JSON.stringify(value), 40));
  return `{ ${values.join(", ")}${parts.length > values.length ? " …" : ""} }`;
}

function Leaf({ value, path, findLink }: ValueProps) {
  const text = shorten(JSON.stringify(value), MOST.characters);
  const open = typeof value === "string" ? findLink(path, value) : null;
  return (
    <>
      <Name of={path.at(-1)} />
      {open === null ? (
        <span class={`is-${value === null ? "null" : typeof value}`}>{text}</span>
      ) : (
        <button type="button" class="link" onClick={open}>
          {text}
        </button>
      )}
    </>
  );
}

function Name({ of: name }: { readonly of: string | undefined }) {
  return name === undefined ? null : <span class="name">{name}: </span>;
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
