/** The view on health: whether a server would be ready, and what `precast doctor` advises. */
import type { Advice, Health as HealthData } from "../health.ts";
import { Loaded, useData } from "./data.tsx";

export function Health() {
  const health = useData<HealthData>("health");
  const advice = useData<Advice>("advice");
  return (
    <>
      <Loaded of={health}>{(data) => <Readiness of={data} />}</Loaded>
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
