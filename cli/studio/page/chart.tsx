/** Draws numbers by day as stacked bars, with a legend, and the same numbers as a table for whoever does not see bars. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { formatCount } from "../../../shared/text.ts";
import { NUMBER, Table, TEXT } from "./table.tsx";

export type Series = { readonly name: string /** One for each day. */; readonly counts: readonly number[] };

type ChartProps = {
  readonly label: string;
  readonly days: readonly string[];
  /** The largest first. */
  readonly series: readonly Series[];
};

export function Chart({ label, days, series }: ChartProps) {
  const [hovered, setHovered] = useState<number | null>(null);
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  const total = (day: number) => sum(series.map(({ counts }) => counts[day] ?? 0));
  return (
    <figure class="card chart">
      <Bars label={label} days={days} series={series} onHover={setHovered} />
      <figcaption>
        <ul class="legend">
          {series.map(({ name, counts }, index) => (
            <li key={name}>
              <span class={`swatch c${index}`} /> {name}{" "}
              <span class="quiet">{formatCount(hovered === null ? sum(counts) : (counts[hovered] ?? 0))}</span>
            </li>
          ))}
          <li class="quiet">{hovered === null ? "in all" : `on ${days[hovered]}: ${formatCount(total(hovered))}`}</li>
        </ul>
        <details>
          <summary>The same as a table</summary>
          <Table
            label={label}
            columns={[TEXT("Day"), ...series.map(({ name }) => NUMBER(name)), NUMBER("Total")]}
            rows={days.map((day, index) => [
              day,
              ...series.map(({ counts }) => formatCount(counts[index] ?? 0)),
              formatCount(total(index)),
            ])}
          />
        </details>
      </figcaption>
    </figure>
  );
}

type BarsProps = ChartProps & { readonly onHover: (day: number | null) => void };

function Bars({ label, days, series, onHover }: BarsProps) {
  const place = useRef<HTMLDivElement>(null);
  const isDark = useDarkness();
  useEffect(() => {
    const parent = place.current as HTMLDivElement;
    const plot = new uPlot(plotOptions(parent, days, series, onHover), stack(days, series), parent);
    const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: HEIGHT }));
    resized.observe(parent);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [days, series, onHover, isDark]);
  return <div ref={place} class="bars" role="img" aria-label={`${label}: the table below has its numbers`} />;
}

const HEIGHT = 260;
/** How many colours the style sheet has. */
export const COLOURS = 8;

/** Each series is drawn on top of those before it. The highest sums come first, so that they lie behind the others. */
function stack(days: readonly string[], series: readonly Series[]): uPlot.AlignedData {
  const sums: number[][] = [];
  for (const { counts } of series) sums.unshift(counts.map((count, day) => count + (sums[0]?.[day] ?? 0)));
  return [days.map((_, day) => day), ...sums];
}

function plotOptions(
  parent: HTMLElement,
  days: readonly string[],
  series: readonly Series[],
  onHover: (day: number | null) => void,
): uPlot.Options {
  const axis = { stroke: readColour(parent, "quiet"), grid: { stroke: readColour(parent, "line"), width: 1 } };
  const bars = uPlot.paths.bars?.({ size: [0.7, 48] });
  return {
    width: parent.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: [-0.5, days.length - 0.5] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        values: (_, marks) => marks.map((day) => (Number.isInteger(day) ? (days[day]?.slice(5) ?? "") : "")),
      },
      {
        ...axis,
        size: 64,
        values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? formatCount(mark) : "")),
      },
    ],
    series: [
      {},
      ...series.map((_, index) => {
        const fill = readColour(parent, `c${series.length - 1 - index}`);
        return { fill, width: 0, points: { show: false }, ...(bars === undefined ? {} : { paths: bars }) };
      }),
    ],
    hooks: { setCursor: [({ cursor }) => onHover(cursor.idx ?? null)] },
  };
}

/** The colour that the style sheet gives to a class, in the scheme of the moment: a canvas knows no variables. */
function readColour(parent: HTMLElement, name: string): string {
  const probe = parent.appendChild(document.createElement("span"));
  probe.className = `probe ${name}`;
  const { backgroundColor } = getComputedStyle(probe);
  probe.remove();
  return backgroundColor;
}

function useDarkness(): boolean {
  const [isDark, setDark] = useState(() => matchMedia(DARK).matches);
  useEffect(() => {
    const scheme = matchMedia(DARK);
    const follow = () => setDark(scheme.matches);
    scheme.addEventListener("change", follow);
    return () => scheme.removeEventListener("change", follow);
  }, []);
  return isDark;
}

const DARK = "(prefers-color-scheme: dark)";
