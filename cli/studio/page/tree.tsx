/** The view on the tree: how large and how old it is, of what it consists, and what its last builds wrote. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatBytes, formatCount, formatSeconds } from "../../../shared/text.ts";
import type { Kind, Tree as TreeData, TreePart } from "../tree.ts";
import { Choices } from "./controls.tsx";
import { type Data, Loaded, Time, useData, type ViewProps } from "./data.tsx";
import { formatShare, NUMBER, Table, TEXT } from "./table.tsx";
import { groupParts, KIND_NAMES, type Measure, type Part, sum, Treemap } from "./treemap.tsx";

export function Tree({ app: { key } }: ViewProps) {
  const tree = useData<TreeData>("tree", { app: key });
  const parts = useData<readonly TreePart[]>("parts", { app: key });
  return (
    <Loaded of={tree}>
      {({ status, behind, history }) => (
        <>
          {status === null ? (
            <p>
              The app {key} has no tree: <code>precast build</code> writes it.
            </p>
          ) : (
            <>
              <p>
                <strong class="large">{formatCount(status.files)}</strong> files, {formatBytes(status.bytes)}, built{" "}
                <Time of={status.built_at} /> UTC{" "}
                <span class={status.current ? "badge good" : "badge warn"}>{behind}</span>
              </p>
              <Parts app={key} status={status} of={parts} />
            </>
          )}
          <h2>The last builds</h2>
          <History of={history} />
        </>
      )}
    </Loaded>
  );
}

// Of what it consists.

type PartsProps = {
  readonly app: string;
  readonly status: NonNullable<TreeData["status"]>;
  readonly of: Data<readonly TreePart[]>;
};

/** All files are looked at for kinds and fields, which takes a moment. Types are known at once. */
function Parts({ app, status, of: data }: PartsProps) {
  const [by, setBy] = useState<Measure>("files");
  const [path, setPath] = useState<readonly string[]>([]);
  const here = useRef<HTMLButtonElement>(null);
  const isEntered = useRef(false);
  const parts = data.kind === "loaded" ? data.value : null;
  const whole = useMemo(
    () => (parts === null ? groupTypes(app, status.sizes) : groupParts(app, parts)),
    [app, status, parts],
  );
  const trail = findTrail(whole, path);
  const shown = trail.at(-1) as Part;
  const show = (names: readonly string[]) => {
    isEntered.current = true;
    setPath(names);
  };
  // Screen readers and the keyboard go on at the part that was stepped into.
  useEffect(() => {
    if (isEntered.current) here.current?.focus();
  }, [path]);
  const enter = ({ name }: Part) => show([...trail.slice(1).map((part) => part.name), name]);
  return (
    <>
      <div class="row">
        <Choices of={MEASURES} chosen={by} onChoose={setBy} />
        <nav class="trail" aria-label="Shown part">
          {trail.map(({ name }, depth) => {
            const isHere = depth === trail.length - 1;
            return (
              <button
                key={name}
                ref={isHere ? here : null}
                type="button"
                aria-current={isHere ? "true" : undefined}
                onClick={() => show(trail.slice(1, depth + 1).map((part) => part.name))}
              >
                {name}
              </button>
            );
          })}
        </nav>
      </div>
      {parts === null ? <Loaded of={data}>{() => null}</Loaded> : <Kinds of={shown} by={by} />}
      <Treemap of={shown} by={by} enter={enter} />
      <Table
        label={`Parts of ${shown.name}`}
        columns={[TEXT("Part"), NUMBER("Files"), NUMBER("of the files"), NUMBER("Size"), NUMBER("of the size")]}
        rows={[...shown.parts]
          .sort((a, b) => b[by] - a[by])
          .map((part) => [
            part.parts.length === 0 ? part.name : <PartButton of={part} enter={enter} />,
            formatCount(part.files),
            formatShare(part.files, shown.files),
            formatBytes(part.bytes),
            formatShare(part.bytes, shown.bytes),
          ])}
      />
    </>
  );
}

const MEASURES = ["files", "bytes"] as const;

function PartButton({ of: part, enter }: { readonly of: Part; readonly enter: (part: Part) => void }) {
  return (
    <button type="button" class="link" onClick={() => enter(part)}>
      {part.name}
    </button>
  );
}

function groupTypes(app: string, sizes: NonNullable<TreeData["status"]>["sizes"]): Part {
  const parts = Object.entries(sizes).map(([slug, size]) => {
    const name = slug.startsWith("_") ? KIND_NAMES.catalog : slug;
    return { name, kind: null, ...size, parts: [] };
  });
  return { name: app, kind: null, files: sum(parts, "files"), bytes: sum(parts, "bytes"), parts };
}

/** The part that a path of names leads to, and those above it. A name that is no longer there ends it. */
function findTrail(whole: Part, path: readonly string[]): readonly Part[] {
  const [name, ...rest] = path;
  const next = whole.parts.find((part) => part.name === name);
  return next === undefined ? [whole] : [whole, ...findTrail(next, rest)];
}

/** The legend of the colours, and how much there is of each. */
function Kinds({ of: part, by }: { readonly of: Part; readonly by: Measure }) {
  const sums = new Map<Kind, number>();
  const add = ({ kind, parts, [by]: size }: Part) => {
    if (parts.length > 0) for (const inner of parts) add(inner);
    else if (kind !== null) sums.set(kind, (sums.get(kind) ?? 0) + size);
  };
  add(part);
  return (
    <ul class="legend kinds" aria-label="Kinds">
      {[...sums]
        .sort(([, a], [, b]) => b - a)
        .map(([kind, size]) => (
          <li key={kind} title={MEANINGS[kind]}>
            <span class={`swatch is-${kind}`} /> {KIND_NAMES[kind]} <strong>{formatShare(size, part[by])}</strong>
          </li>
        ))}
    </ul>
  );
}

const MEANINGS: Readonly<Record<Kind, string>> = {
  catalog: "The catalog of all types",
  schema: "The schema of a type",
  page: "Lists without filter and sort, page by page",
  filter: "The first page of a list with one filter, for each value",
  sort: "The first page of a list with one sort, for each order",
  entry: "Entries",
};

// What was written.

function History({ of: history }: { readonly of: TreeData["history"] }) {
  if (history.length === 0) return <p class="quiet">None is recorded yet: a build that writes something is.</p>;
  return (
    <Table
      label="The last builds"
      columns={[
        ...[TEXT("Built (UTC)"), TEXT("Why")],
        ...[NUMBER("Written"), NUMBER("Deleted"), NUMBER("Unchanged"), NUMBER("Size"), NUMBER("Time")],
      ]}
      rows={history.map(({ built_at, mode, reason, written, deleted, unchanged, bytes, seconds }) => [
        <Time of={built_at} />,
        <>
          <span class={mode === "full" ? "badge warn" : "badge"}>{mode}</span> {reason}
        </>,
        ...[written, deleted, unchanged].map((files) => formatCount(files)),
        formatBytes(bytes),
        formatSeconds(seconds),
      ])}
    />
  );
}
