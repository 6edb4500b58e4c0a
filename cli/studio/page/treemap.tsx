/** Draws the parts of a tree as areas in proportion to their size, coloured by kind. Each part can be stepped into. */
import { type HierarchyRectangularNode, hierarchy, treemap } from "d3-hierarchy";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Kind, TreePart } from "../tree.ts";
import { formatShare } from "./table.tsx";

export type Measure = "files" | "bytes";

/** A part of the tree that has parts itself, or none. `kind` is null as long as only types are known. */
export type Part = {
  readonly name: string;
  readonly kind: Kind | null;
  readonly files: number;
  readonly bytes: number;
  readonly parts: readonly Part[];
};

export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  catalog: "catalog",
  schema: "schemas",
  page: "pages",
  filter: "filters",
  sort: "sorts",
  entry: "entries",
};

/** By type, then by kind, then by field. */
export function groupParts(name: string, all: readonly TreePart[]): Part {
  return group(name, null, all, [
    ({ type }) => type ?? KIND_NAMES.catalog,
    ({ kind }) => KIND_NAMES[kind],
    ({ field }) => field,
  ]);
}

type Grouping = (part: TreePart) => string | null;

function group(name: string, kind: Kind | null, all: readonly TreePart[], [by, ...rest]: readonly Grouping[]): Part {
  const groups = new Map<string, TreePart[]>();
  for (const part of all) {
    const one = by?.(part) ?? null;
    // The catalog is the only one of its kind.
    if (one !== null && one !== name) groups.set(one, [...(groups.get(one) ?? []), part]);
  }
  const parts = [...groups].map(([one, some]) => group(one, findKind(some), some, rest));
  return { name, kind, files: sum(all, "files"), bytes: sum(all, "bytes"), parts };
}

function findKind([first, ...others]: readonly TreePart[]): Kind | null {
  return first !== undefined && others.every(({ kind }) => kind === first.kind) ? first.kind : null;
}

export function sum(parts: readonly { readonly [measure in Measure]: number }[], measure: Measure): number {
  return parts.reduce((total, part) => total + part[measure], 0);
}

type MapProps = { readonly of: Part; readonly by: Measure; readonly enter: (part: Part) => void };

export function Treemap({ of: part, by, enter }: MapProps) {
  const place = useRef<HTMLUListElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current as HTMLUListElement;
    const resized = new ResizeObserver(() => setWidth(element.clientWidth));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  const root = width === 0 ? null : layOut(part, by, width);
  return (
    <ul ref={place} class="map" style={{ height: `${HEIGHT}px` }} aria-label={`${part.name}: its parts by ${by}`}>
      {root?.children?.map((node) => (
        <Area key={node.data.name} of={node} whole={part[by]} by={by} enter={enter} />
      ))}
    </ul>
  );
}

const HEIGHT = 460;
/** Room for the name of a part above its own parts. */
const TITLE = 24;

type Node = HierarchyRectangularNode<Part>;

function layOut(part: Part, by: Measure, width: number): Node {
  const root = hierarchy(part, ({ parts }) => parts)
    .sum(({ parts, [by]: size }) => (parts.length === 0 ? size : 0))
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const lay = treemap<Part>()
    .size([width, HEIGHT])
    .round(true)
    .paddingInner(2)
    .paddingTop(({ depth }) => (depth === 1 ? TITLE : 0));
  return lay(root);
}

type AreaProps = { readonly of: Node; readonly whole: number; readonly by: Measure; readonly enter: MapProps["enter"] };

function Area({ of: node, whole, by, enter }: AreaProps) {
  const { data: part, x0, y0 } = node;
  const share = formatShare(part[by], whole);
  const inside = node.leaves().filter((leaf) => leaf !== node);
  const content = (
    <>
      <span class="title">
        {part.name} <span class="share">{share}</span>
      </span>
      {inside.map((leaf) => (
        <Tile key={findPath(leaf)} of={leaf} share={formatShare(leaf.data[by], whole)} x={x0} y={y0} />
      ))}
    </>
  );
  const kind = inside.length === 0 ? `is-${part.kind}` : "";
  return (
    <li class="box" style={findBox(node, 0, 0)} title={`${part.name}: ${share}`}>
      {inside.length === 0 ? (
        <div class={`area ${kind}`}>{content}</div>
      ) : (
        <button type="button" class="area" onClick={() => enter(part)}>
          {content}
        </button>
      )}
    </li>
  );
}

type TileProps = { readonly of: Node; readonly share: string; readonly x: number; readonly y: number };

/** Seen, but not read out: the part is stepped into to know more. */
function Tile({ of: leaf, share, x, y }: TileProps) {
  const { data: part, x0, x1, y0, y1 } = leaf;
  const isLarge = x1 - x0 > 56 && y1 - y0 > 18;
  return (
    <span class={`tile is-${part.kind}`} style={findBox(leaf, x, y)} aria-hidden="true">
      {isLarge ? `${part.name} ${x1 - x0 > 150 ? share : ""}` : ""}
    </span>
  );
}

function findPath(node: Node): string {
  return node
    .ancestors()
    .map(({ data }) => data.name)
    .join();
}

/** Relative to the corner at `x` and `y`. */
function findBox({ x0, x1, y0, y1 }: Node, x: number, y: number) {
  return { left: `${x0 - x}px`, top: `${y0 - y}px`, width: `${x1 - x0}px`, height: `${y1 - y0}px` };
}
