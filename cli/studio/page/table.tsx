/** A table that scrolls by itself where it is too wide, and how the views write numbers in it. */
import type { ComponentChildren } from "preact";

export type Column = { readonly title: string; readonly isNumber?: boolean };

export const TEXT = (title: string): Column => ({ title });
export const NUMBER = (title: string): Column => ({ title, isNumber: true });

type TableProps = {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly ComponentChildren[])[];
};

export function Table({ label, columns, rows }: TableProps) {
  const classOf = (index: number) => (columns[index]?.isNumber ? "number" : undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="wide" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title }, index) => (
              <th key={title} scope="col" class={classOf(index)}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={columns[index]?.title} class={classOf(index)}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function formatShare(part: number, whole: number): string {
  if (whole === 0) return "–";
  const percent = (part / whole) * 100;
  return part > 0 && percent < 0.05 ? "< 0.1 %" : `${percent.toFixed(1)} %`;
}
