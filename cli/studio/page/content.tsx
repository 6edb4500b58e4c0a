/** The view on content: the entries of a type, drafts among them, and one entry with what belongs to it. */
import type { ComponentChildren } from "preact";
import { formatCount, formatCounted } from "../../../shared/text.ts";
import type { ContentPage, EntryHead, EntryView, FieldView, Medium } from "../content.ts";
import { Loaded, Time, useData, type ViewProps } from "./data.tsx";
import { useRoute, writeHash } from "./route.ts";
import { Table, TEXT } from "./table.tsx";

export function Content({ app }: ViewProps) {
  const { params } = useRoute();
  const { key } = app;
  const [type, id] = [params.get("type") ?? "", params.get("id") ?? ""];
  return id === "" ? <Entries app={key} params={params} /> : <Entry app={key} type={type} id={id} />;
}

type EntriesProps = { readonly app: string; readonly params: URLSearchParams };

function Entries({ app, params }: EntriesProps) {
  const asked = {
    app,
    type: params.get("type") ?? "",
    status: params.get("status") ?? "",
    search: params.get("search") ?? "",
    page: params.get("page") ?? "",
  };
  const data = useData<ContentPage>("content", asked);
  const link = (change: Partial<typeof asked>) => writeHash("content", { ...asked, ...change });
  const go = (change: Partial<typeof asked>) => {
    location.hash = link({ page: "", ...change });
  };
  return (
    <Loaded of={data}>
      {({ types, type, entries, total, per_page }) => (
        <>
          <nav class="tabs" aria-label="Content types">
            {types.map(({ slug, name, published }) => (
              <a key={slug} href={link({ type: slug, page: "" })} aria-current={slug === type ? "true" : undefined}>
                {name || slug}
                {published ? "" : " (unpublished)"}
              </a>
            ))}
          </nav>
          <search class="row">
            <label>
              Title or id{" "}
              <input
                type="search"
                value={asked.search}
                onChange={({ currentTarget }) => go({ type, search: currentTarget.value })}
              />
            </label>
            <label>
              Status{" "}
              <select value={asked.status} onChange={({ currentTarget }) => go({ type, status: currentTarget.value })}>
                <option value="">all</option>
                <option value="published">published</option>
                <option value="draft">drafts</option>
              </select>
            </label>
          </search>
          <p role="status" class="quiet">
            {formatCounted(total, "entry", "entries")}, those edited last first
          </p>
          <EntryTable app={app} entries={entries} />
          <Pages
            page={Number(asked.page) || 1}
            last={Math.ceil(total / per_page)}
            link={(page) => link({ type, page })}
          />
        </>
      )}
    </Loaded>
  );
}

function EntryTable({ app, entries }: { readonly app: string; readonly entries: readonly EntryHead[] }) {
  return (
    <Table
      label="Entries"
      columns={["Title", "Status", "Published", "Edited"].map(TEXT)}
      rows={entries.map((entry) => [
        <EntryLink app={app} entry={entry} />,
        <Status of={entry} />,
        ...[entry.published_at, entry.updated_at].map((time) => (
          <span class="quiet">
            <Time of={time} />
          </span>
        )),
      ])}
    />
  );
}

function EntryLink({ app, entry: { type, id, title } }: { readonly app: string; readonly entry: EntryHead }) {
  return <a href={writeHash("content", { app, type, id })}>{title || id}</a>;
}

function Status({ of: { status } }: { readonly of: EntryHead }) {
  return <span class={status === "draft" ? "badge warn" : "badge good"}>{status}</span>;
}

type PagesProps = { readonly page: number; readonly last: number; readonly link: (page: string) => string };

function Pages({ page, last, link }: PagesProps) {
  if (last <= 1) return null;
  return (
    <nav class="row" aria-label="Pages">
      {page > 1 ? <a href={link(String(page - 1))}>Previous</a> : null}
      <span class="quiet">
        Page {formatCount(page)} of {formatCount(last)}
      </span>
      {page < last ? <a href={link(String(page + 1))}>Next</a> : null}
    </nav>
  );
}

// One entry.

type EntryProps = { readonly app: string; readonly type: string; readonly id: string };

function Entry({ app, type, id }: EntryProps) {
  const data = useData<EntryView>("entry", { app, type, id });
  return (
    <>
      <p>
        <a href={writeHash("content", { app, type })}>← {type}</a>
      </p>
      <Loaded of={data}>
        {(entry) => (
          <>
            <h2>
              {entry.title || entry.id} <Status of={entry} />
            </h2>
            {entry.status === "draft" ? <p class="warn">A draft: no answer of the API shows it.</p> : null}
            <div class="columns">
              <section aria-label="Fields" class="card">
                <dl>
                  <Property name="id">
                    <code>{entry.id}</code>
                  </Property>
                  {entry.fields.map((view) => (
                    <Property key={view.field.name} name={view.field.name}>
                      <Value app={app} of={view} />
                    </Property>
                  ))}
                  <Property name="published_at">
                    <Time of={entry.published_at} />
                  </Property>
                  <Property name="created_at">
                    <Time of={entry.created_at} />
                  </Property>
                  <Property name="updated_at">
                    <Time of={entry.updated_at} />
                  </Property>
                </dl>
              </section>
              <Files app={app} of={entry} />
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

function Property({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Value({ app, of: { field, value, related, media } }: { readonly app: string; readonly of: FieldView }) {
  if (value === null) return <span class="quiet">null</span>;
  switch (field.type) {
    case "relation":
      return (
        <ul class="plain">
          {[value].flat().map((id, index) => {
            const entry = related[index];
            return (
              <li key={id}>
                {entry ? <Related app={app} entry={entry} /> : <span class="bad">{`${id}: no entry`}</span>}
              </li>
            );
          })}
        </ul>
      );
    case "media":
      return (
        <ul class="plain">
          {media.map((medium) => (
            <li key={medium.url}>
              <MediumLink of={medium} />
            </li>
          ))}
        </ul>
      );
    case "rich_text":
      return (
        <details>
          <summary>{formatCount(String(value).length)} characters of HTML</summary>
          <pre>{String(value)}</pre>
        </details>
      );
    case "json":
      return <pre>{JSON.stringify(value, null, 2)}</pre>;
    default:
      return <>{Array.isArray(value) ? value.join(", ") : String(value)}</>;
  }
}

function Related({ app, entry }: { readonly app: string; readonly entry: EntryHead }) {
  return (
    <>
      <EntryLink app={app} entry={entry} /> {entry.status === "draft" ? <Status of={entry} /> : null}
    </>
  );
}

const IMAGE = /\.(avif|gif|jpe?g|png|svg|webp)$/i;

/** Only images of this machine are loaded: the studio asks no other. */
function MediumLink({ of: { url, here } }: { readonly of: Medium }) {
  return (
    <a href={url} rel="noreferrer" target="_blank">
      {here !== null && IMAGE.test(url) ? <img src={here} alt="" loading="lazy" /> : null}
      {url}
    </a>
  );
}

function Files({ app, of: { files, more, status } }: { readonly app: string; readonly of: EntryView }) {
  return (
    <section aria-label="Files of the tree" class="card">
      <h3>Files of the tree</h3>
      {files.length === 0 ? (
        <p class="quiet">{status === "draft" ? "None: drafts are not built." : "None: it is not built yet."}</p>
      ) : (
        <ul class="plain code">
          {files.map(({ path, request }) => (
            <li key={path}>
              <a href={writeHash("explorer", { app, request })}>{request}</a>
              <div class="quiet">{path}</div>
            </li>
          ))}
        </ul>
      )}
      {more ? <p class="quiet">The type has so many pages that only the first 2,000 were looked through.</p> : null}
    </section>
  );
}
