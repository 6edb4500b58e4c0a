/** The answer to a request: status, where it came from, what the database did for it, its headers, and its body. */
import { type App, type ContentType, findField, findType } from "../../../shared/api/catalog.ts";
import { formatBytes } from "../../../shared/text.ts";
import type { ExplainedFile } from "../../explain/explanation.ts";
import { formatMilliseconds } from "../../explain/plan-text.ts";
import type { AnswerSource, ExploredAnswer } from "../explore.ts";
import { Code, Copy } from "./controls.tsx";
import { readDraft } from "./draft.ts";
import { type FindLink, Json } from "./json.tsx";

type AnswerProps = {
  readonly app: App;
  readonly target: string;
  readonly answer: ExploredAnswer;
  /** Asks for what a value of the body names. */
  readonly onOpen: (target: string) => void;
};

const SOURCES: Record<AnswerSource, string> = {
  tree: "from the tree",
  kept: "kept: unchanged since the database answered",
  database: "from the database",
  none: "refused",
};

export function Answer({ app, target, answer, onOpen }: AnswerProps) {
  const { status, headers, body, bytes, milliseconds, source } = answer;
  const isCounted = headers["X-Request-Counted"] === "true";
  return (
    <>
      <p class="target">
        <code>GET {target}</code>
      </p>
      <p role="status">
        <span class={status < 400 ? "badge good" : "badge bad"}>{status}</span>{" "}
        <span class={isCounted ? "badge warn" : "badge good"}>{isCounted ? "Counted" : "Free"}</span>{" "}
        {[formatBytes(bytes), formatMilliseconds(milliseconds), SOURCES[source]].join(" · ")}
      </p>
      <Origin of={answer} />
      <details>
        <summary>{Object.keys(headers).length} headers</summary>
        <Code
          text={Object.entries(headers)
            .map((header) => header.join(": "))
            .join("\n")}
        />
      </details>
      <div class="row">
        <h3>Body</h3>
        <Copy key={body} text={body} />
      </div>
      <Json text={body} findLink={openLinks(app, target, onOpen)} />
    </>
  );
}

function Origin({ of: { file, query } }: { readonly of: ExploredAnswer }) {
  return (
    <>
      {file === null ? null : (
        <p class="target">
          <span class={file.exists ? "badge good" : "badge"}>File</span> <code>{file.path}</code> {describeFile(file)}
        </p>
      )}
      {query === null ? null : (
        <>
          <p>
            <span class={query.byIndex ? "badge good" : "badge warn"}>{query.byIndex ? "Index" : "Scan"}</span>{" "}
            {query.sentence}
          </p>
          <details>
            <summary>
              Plan <span class="quiet">{query.times}</span>
            </summary>
            <Code text={query.plan} />
          </details>
          <details>
            <summary>SQL</summary>
            <Code text={`${query.sql}\n\n-- ${query.values}`} />
          </details>
        </>
      )}
    </>
  );
}

function describeFile({ exists, has_tree }: ExplainedFile): string {
  if (!has_tree) return "(the app has no complete tree: the request is answered live)";
  return exists ? "" : "(there is no such file: the answer is an empty list or 404)";
}

/** Ids of entries, and relations to them, lead to these entries. */
function openLinks(app: App, target: string, onOpen: (target: string) => void): FindLink {
  const route = readDraft(target, app.key)?.route;
  const type = route === undefined || route.kind === "catalog" ? undefined : findType(app, route.slug);
  return (path, value) => {
    const slug = findLinked(type, path);
    return slug === null ? null : () => onOpen(`/api/v1/${slug}/${value}`);
  };
}

/** `path` begins with `data`, in lists with the place of the item, and ends with the place in a field of several values. */
function findLinked(type: ContentType | undefined, [top, ...path]: readonly string[]): string | null {
  const [name, place, ...deeper] = path.filter((part, index) => index > 0 || !/^\d+$/.test(part));
  if (type === undefined || top !== "data" || name === undefined || deeper.length > 0) return null;
  if (name === "id") return type.slug;
  const field = findField(type, name);
  return field?.type === "relation" && (place === undefined || field.multiple) ? field.target : null;
}
