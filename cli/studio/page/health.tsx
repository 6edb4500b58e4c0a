/** The view on health: whether a server would be ready, what workers publish, and what `precast doctor` advises. */
import type { Advice, Health as HealthData, Queue } from "../health.ts";
import { Loaded, useData } from "./data.tsx";
import { NUMBER, Table, TEXT } from "./table.tsx";

export function Health() {
  const health = useData<HealthData>("health");
  const queue = useData<Queue>("queue");
  const advice = useData<Advice>("advice");
  return (
    <>
      <Loaded of={health}>{(data) => <Readiness of={data} />}</Loaded>
      <Loaded of={queue}>{(data) => (data === null ? null : <Publications of={data} />)}</Loaded>
      <h2>Advice</h2>
      <Loaded of={advice}>
        {(findings) =>
          findings.length === 0 ? (
            <p class="good">Nothing to change.</p>
          ) : (
            findings.map((finding) => <Finding key={`${finding.check} ${finding.subject}`} of={finding} />)
          )
        }
      </Loaded>
    </>
  );
}

const WORDS = { ok: "Ready", degraded: "Ready for some requests", unavailable: "Not ready" } as const;

function Readiness({ of: { status, tree, database, ledger } }: { readonly of: HealthData }) {
  const parts = [
    { name: "Tree", ready: tree.ready, text: tree.built_at === null ? "not built" : `built ${tree.built_at}` },
    { name: "Database", ready: database.ready, text: database.error ?? "answers" },
    { name: "Ledger", ready: ledger.ready, text: ledger.error ?? "can take counts" },
  ];
  return (
    <section aria-label="Readiness">
      <p>
        <span class={status === "ok" ? "badge good" : "badge bad"}>{WORDS[status]}</span>
      </p>
      <dl>
        {parts.map(({ name, ready, text }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class={ready ? "" : "bad"}>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Publications({ of: { waiting, running, failed, oldest, apps } }: { readonly of: NonNullable<Queue> }) {
  const age = oldest === null ? "everything is visible" : `the oldest is ${Math.round(oldest)} s old`;
  return (
    <>
      <h2>Publications</h2>
      <p class={failed > 0 ? "bad" : ""}>
        {waiting} waiting, {running} running, {failed} failed: {age}.
      </p>
      {apps.length === 0 ? null : (
        <Table
          label="Apps to be published"
          columns={[...["App", "State", "Published"].map(TEXT), NUMBER("Attempts"), TEXT("Error")]}
          rows={apps.map(({ app, state, since, attempts, error }) => [app, state, since, attempts, error ?? ""])}
        />
      )}
    </>
  );
}

function Finding({ of: { kind, subject, problem, gain, remedy, fix } }: { readonly of: Advice[number] }) {
  return (
    <article class="card">
      <h3>
        {subject} <span class={kind === "advice" ? "badge warn" : "badge"}>{kind}</span>
      </h3>
      <p>{problem}</p>
      <dl>
        <div>
          <dt>Gain</dt>
          <dd>{gain}</dd>
        </div>
        <div>
          <dt>Remedy</dt>
          <dd>{remedy}</dd>
        </div>
      </dl>
      {fix === null ? null : (
        <p class="quiet">
          <code>precast doctor --fix</code> does this.
        </p>
      )}
    </article>
  );
}
