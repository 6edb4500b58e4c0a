/** The view on usage: counted requests by day, what could have been free, and how many the month will have. */
import { useMemo, useState } from "preact/hooks";
import { formatCount, formatCounted } from "../../../shared/text.ts";
import type { Month, NamedCount, Usage as UsageData } from "../usage.ts";
import { Chart, COLOURS, type Series } from "./chart.tsx";
import { Choices } from "./controls.tsx";
import { IS_REPORT, Loaded, useData, type ViewProps } from "./data.tsx";
import { replaceRoute, useRoute } from "./route.ts";
import { formatShare, NUMBER, Table, TEXT } from "./table.tsx";

const WAYS = ["shape", "type"] as const;

export function Usage({ app: { key } }: ViewProps) {
  const { params } = useRoute();
  const [asked, setAsked] = useState({
    since: params.get("since") ?? "",
    until: params.get("until") ?? "",
    by: params.get("by") === "type" ? ("type" as const) : ("shape" as const),
    plan: params.get("plan") ?? "",
  });
  const { since, until, by, plan } = asked;
  const data = useData<UsageData>("usage", { app: key, since, until });
  const shown = data.kind === "loaded" ? data.value : null;
  const change = (some: Partial<typeof asked>) => {
    setAsked({ ...asked, ...some });
    if (!IS_REPORT) replaceRoute("usage", { app: key, ...asked, ...some });
  };
  return (
    <>
      <div class="row">
        <Choices of={WAYS} chosen={by} onChoose={(way) => change({ by: way })} />
        {IS_REPORT ? null : (
          <>
            <Day label="Since" value={shown?.since ?? since} onChange={(day) => change({ since: day })} />
            <Day label="Until" value={shown?.until ?? until} onChange={(day) => change({ until: day })} />
          </>
        )}
      </div>
      <Loaded of={data}>
        {(usage) => (
          <>
            <Days of={usage} by={by} />
            <div class="columns">
              <Forecast of={usage.month} plan={Number(plan) || usage.plan} app={key}>
                {IS_REPORT ? null : (
                  <Plan value={plan || String(usage.plan ?? "")} onChange={(value) => change({ plan: value })} />
                )}
              </Forecast>
              <Savings of={usage} />
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

type FieldProps = { readonly value: string; readonly onChange: (value: string) => void };

function Day({ label, value, onChange }: FieldProps & { readonly label: string }) {
  return (
    <label>
      {label} <input type="date" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)} />
    </label>
  );
}

// The bars.

function Days({ of: usage, by }: { readonly of: UsageData; readonly by: (typeof WAYS)[number] }) {
  const { since, until, total, days } = usage;
  const names = useMemo(() => days.map(({ day }) => day), [days]);
  const series = useMemo(() => findSeries(names, by === "type" ? usage.types : usage.shapes), [names, usage, by]);
  return (
    <>
      <p role="status">
        <strong class="large">{formatCount(total)}</strong> counted {total === 1 ? "request" : "requests"}, {since} to{" "}
        {until} (UTC)
      </p>
      {total === 0 ? (
        <p class="quiet">Nothing was counted on these days: what was asked for was free.</p>
      ) : (
        <Chart label={`Counted requests by day and ${by}`} days={names} series={series} />
      )}
    </>
  );
}

/** Of types that the app did not have, or that were counted before they were recorded. */
const UNNAMED = "(none)";

/** The largest first. What has no colour of its own is added up. */
function findSeries(days: readonly string[], counts: readonly NamedCount[]): Series[] {
  const sums = new Map<string, number>();
  for (const { name, count } of counts) sums.set(name, (sums.get(name) ?? 0) + count);
  const names = [...sums].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const shown = names.length > COLOURS ? names.slice(0, COLOURS - 1) : names;
  const groups = [
    ...shown.map((name) => ({ name: name || UNNAMED, has: (one: string) => one === name })),
    ...(shown.length < names.length
      ? [{ name: `${names.length - shown.length} others`, has: (one: string) => !shown.includes(one) }]
      : []),
  ];
  const places = new Map(days.map((day, index) => [day, index]));
  return groups.map(({ name, has }) => {
    const byDay = days.map(() => 0);
    for (const one of counts)
      if (has(one.name)) byDay[places.get(one.day) ?? 0] = (byDay[places.get(one.day) ?? 0] ?? 0) + one.count;
    return { name, counts: byDay };
  });
}

// The forecast.

type ForecastProps = {
  readonly of: Month;
  readonly plan: number | null;
  readonly app: string;
  readonly children: preact.ComponentChildren;
};

function Forecast({ of: month, plan, app, children }: ForecastProps) {
  const { counted, mean, meanDays, daysLeft, forecast } = month;
  const name = new Date(`${month.name}-01`).toLocaleDateString("en", MONTH);
  const isOver = plan !== null && forecast > plan;
  return (
    <section class="card" aria-label="Forecast">
      <h2>{name}</h2>
      <p>
        <strong class="large">{formatCount(forecast)}</strong> expected{" "}
        {plan === null ? null : (
          <span class={isOver ? "badge bad" : "badge good"}>{formatShare(forecast, plan)} of the plan</span>
        )}
      </p>
      {plan === null ? null : <PlanBar counted={counted} forecast={forecast} plan={plan} />}
      <p>
        {formatCounted(counted, "request")} so far, and {formatCount(Math.round(mean))} a day on average in the last{" "}
        {meanDays} full days, for the {formatCounted(daysLeft, "day")} left.
        {isOver ? ` That is ${formatCount(forecast - plan)} more than the ${formatCount(plan)} of the plan.` : ""}
        {plan !== null && !isOver
          ? ` The plan has ${formatCount(plan)}, so ${formatCount(plan - forecast)} remain.`
          : ""}
      </p>
      {plan === null ? (
        <p class="quiet">
          With <code>--plan N</code>, the counted requests a month that are paid for, this is compared with them.
        </p>
      ) : null}
      <p class="quiet">Of the app {app} alone.</p>
      {children}
    </section>
  );
}

const MONTH = { month: "long", year: "numeric", timeZone: "UTC" } as const;

type PlanBarProps = { readonly counted: number; readonly forecast: number; readonly plan: number };

function PlanBar({ counted, forecast, plan }: PlanBarProps) {
  const whole = Math.max(plan, forecast);
  const width = (value: number) => ({ width: `${(value / whole) * 100}%` });
  return (
    <div class="plan" aria-hidden="true">
      <span class={forecast > plan ? "expected over" : "expected"} style={width(forecast)} />
      <span class="counted" style={width(counted)} />
      <span class="limit" style={width(plan)} />
    </div>
  );
}

function Plan({ value, onChange }: FieldProps) {
  return (
    <label>
      Plan{" "}
      <input
        type="number"
        min="1"
        placeholder="requests a month"
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  );
}

// What could have been free.

function Savings({ of: { savings, total } }: { readonly of: UsageData }) {
  const saved = savings.reduce((sum, { count }) => sum + count, 0);
  return (
    <section class="card" aria-label="Could have been free">
      <h2>Could have been free</h2>
      {saved === 0 ? (
        <p>None: no free request has the same answer as one of these.</p>
      ) : (
        <>
          <p>
            <strong class="large">{formatCount(saved)}</strong> {saved === 1 ? "request" : "requests"}{" "}
            <span class="badge warn">{formatShare(saved, total)}</span>
          </p>
          <Table
            label="How they could have been free"
            columns={[TEXT("The same answer, free"), NUMBER("Requests"), NUMBER("Share")]}
            rows={savings.map(({ advice, count }) => [advice, formatCount(count), formatShare(count, total)])}
          />
        </>
      )}
    </section>
  );
}
