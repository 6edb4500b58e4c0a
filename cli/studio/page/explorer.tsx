/** The view in which requests are put together, priced while they are typed, and sent. Its address keeps the request. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type App, type ContentType, findType, isFilterable, isSortable } from "../../../shared/api/catalog.ts";
import { MAX_TARGET_SIZE } from "../../../shared/api/errors.ts";
import { completeTarget } from "../../../shared/api/request.ts";
import type { ExploredAnswer } from "../explore.ts";
import { Answer } from "./answer.tsx";
import { Choices, Code, Copy } from "./controls.tsx";
import { load, nameData, type ViewProps } from "./data.tsx";
import { type Draft, readDraft, writeDraft } from "./draft.ts";
import { Price } from "./price.tsx";
import { RequestForm } from "./request-form.tsx";
import { replaceRoute, useRoute } from "./route.ts";
import { LANGUAGES } from "./snippets.ts";
import { Table, TEXT } from "./table.tsx";

/** What was sent, and its answer as far as it is known. */
type Exchange = { readonly target: string; readonly answer: ExploredAnswer } | { readonly failure: string } | null;

export function Explorer({ app }: ViewProps) {
  const { text, type } = useRequestText(app);
  const { exchange, isWaiting, send } = useExchange(app);
  const heading = useRef<HTMLHeadingElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const target = completeTarget(text.trim());
  const draft = readDraft(target, app.key);
  const change = (changed: Draft) => type(writeDraft(changed));

  async function sendAndShow(sent: string): Promise<void> {
    await send(sent);
    // Where the answer is below the form, it would be out of sight.
    heading.current?.scrollIntoView({ block: "nearest" });
  }

  // After these two, what was pressed is gone from the page, and the focus would be with it.

  function take(free: string): void {
    type(free);
    input.current?.focus();
  }

  async function open(other: string): Promise<void> {
    type(other);
    await sendAndShow(other);
    heading.current?.focus();
  }

  return (
    <form
      class="explorer"
      onSubmit={(event) => {
        event.preventDefault();
        void sendAndShow(target);
      }}
    >
      <div class="bar">
        <label>
          <span>GET</span>
          <input
            ref={input}
            aria-label="Request"
            class="code"
            value={text}
            autoComplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => type(currentTarget.value)}
          />
        </label>
        <button type="submit" class="main" disabled={target.length > MAX_TARGET_SIZE}>
          Send
        </button>
      </div>
      <Price app={app} target={target} onTake={take} />
      <div class="sides">
        <div>
          {draft === null ? (
            <NoForm onBegin={() => take(firstTarget(app))} />
          ) : (
            <RequestForm
              app={app}
              draft={draft}
              onChange={change}
              onEntry={(slug) => void findEntry(app, slug).then(type)}
            />
          )}
          <Fields
            type={draft === null || draft.route.kind === "catalog" ? undefined : findType(app, draft.route.slug)}
          />
        </div>
        <div>
          <h2 ref={heading} tabIndex={-1}>
            Answer
          </h2>
          {isWaiting ? (
            <p role="status">Sending …</p>
          ) : (
            <Shown app={app} exchange={exchange} onOpen={(to) => void open(to)} />
          )}
          <Calls app={app} target={target} />
        </div>
      </div>
    </form>
  );
}

function firstTarget({ types }: App): string {
  return `/api/v1/${types[0]?.slug ?? "_schemas"}`;
}

/** The text of the request, as typed. The address follows it, and it follows the address. */
function useRequestText(app: App) {
  const { params } = useRoute();
  const asked = params.get("request") ?? firstTarget(app);
  const [text, setText] = useState(asked);
  // Also when the address is again what it was before the text was changed.
  useEffect(() => setText(asked), [params]);
  const type = (typed: string) => {
    setText(typed);
    replaceRoute("explorer", { app: app.key, request: typed });
  };
  return { text, type };
}

/** The last request that was sent. Another one ends the wait for it. */
function useExchange(app: App) {
  const [exchange, setExchange] = useState<Exchange>(null);
  const [waiting, setWaiting] = useState<AbortController | null>(null);
  const send = async (target: string) => {
    waiting?.abort();
    const own = new AbortController();
    setWaiting(own);
    const done = await ask(app, target, own.signal);
    if (own.signal.aborted) return;
    setExchange(done);
    setWaiting(null);
  };
  return { exchange, isWaiting: waiting !== null, send };
}

async function ask({ key }: App, target: string, signal: AbortSignal): Promise<Exchange> {
  try {
    return { target, answer: await load<ExploredAnswer>(nameData("answer", { app: key, target }), signal) };
  } catch (error) {
    return { failure: (error as Error).message };
  }
}

/** A request for the first entry of a type; for one that cannot be there when the type has none. */
async function findEntry(app: App, slug: string): Promise<string> {
  const list = await ask(app, `/api/v1/${slug}`, new AbortController().signal);
  const body = list !== null && "answer" in list ? (JSON.parse(list.answer.body) as { data?: { id: string }[] }) : {};
  return `/api/v1/${slug}/${body.data?.[0]?.id ?? "00000000-0000-0000-0000-000000000000"}`;
}

function NoForm({ onBegin }: { readonly onBegin: () => void }) {
  return (
    <p>
      No form has such a request.{" "}
      <button type="button" onClick={onBegin}>
        Begin with a list
      </button>
    </p>
  );
}

type ShownProps = { readonly app: App; readonly exchange: Exchange; readonly onOpen: (target: string) => void };

function Shown({ app, exchange, onOpen }: ShownProps) {
  if (exchange === null)
    return <p class="quiet">Enter sends the request. The studio's own requests are never counted.</p>;
  if ("failure" in exchange)
    return (
      <p role="alert" class="bad">
        {exchange.failure}
      </p>
    );
  return <Answer app={app} {...exchange} onOpen={onOpen} />;
}

/** Pixels below which what is beside the answer is above it, and long. */
const NARROW = 960;

function Fields({ type }: { readonly type: ContentType | undefined }) {
  if (type === undefined) return null;
  return (
    <details class="about" open={innerWidth > NARROW}>
      <summary>Fields of {type.name || type.slug}</summary>
      {type.description === "" ? null : <p class="quiet">{type.description}</p>}
      <Table
        label={`Fields of ${type.name || type.slug}`}
        columns={["Name", "Type", "Use"].map(TEXT)}
        rows={type.fields.map((field) => [
          <>
            <code>{field.name}</code>
            <div class="quiet">{field.label === field.name ? "" : field.label}</div>
          </>,
          <>
            {field.type}
            {field.multiple ? "[]" : ""}
            {field.target === null ? "" : ` → ${field.target}`}
            {field.required ? "" : <span class="quiet"> or null</span>}
          </>,
          describeUse(type, field).join(", "),
        ])}
      />
    </details>
  );
}

function describeUse(type: ContentType, { name, searchable }: ContentType["fields"][number]): string[] {
  return [
    ...(isFilterable(type, name) ? ["filter"] : []),
    ...(isSortable(type, name) ? ["sort"] : []),
    ...(searchable ? ["search"] : []),
  ];
}

/** Where `precast serve` listens unless it is told otherwise. */
const LOCAL_API = "http://localhost:3000";

/** The request as code. */
function Calls({ app, target }: { readonly app: App; readonly target: string }) {
  const [url, setUrl] = useState(LOCAL_API);
  const [language, setLanguage] = useState("curl");
  const write = LANGUAGES[language] as (typeof LANGUAGES)[string];
  const code = write({ app, url: url.replace(/\/+$/, ""), target });
  return (
    <section aria-label="Call">
      <h2>Call</h2>
      <div class="row">
        <Choices of={Object.keys(LANGUAGES)} chosen={language} onChoose={setLanguage} />
        <Copy key={code} text={code} />
      </div>
      <Code text={code} />
      <label>
        Address of the API <input value={url} onInput={({ currentTarget }) => setUrl(currentTarget.value)} />
      </label>
    </section>
  );
}
