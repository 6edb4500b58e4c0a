/** A request as a form: its type and endpoint, and the parameters that these have, with what each may name. */
import { useRef } from "preact/hooks";
import {
  type App,
  type Column,
  type ContentType,
  DEFAULT_PER_PAGE,
  defaultPerPage,
  findColumn,
  findType,
  isTimestamp,
  listSortable,
  TIMESTAMPS,
} from "../../../shared/api/catalog.ts";
import { listOperators } from "../../../shared/api/filter.ts";
import { PARAMETERS_OF, type Route } from "../../../shared/api/request.ts";
import { Choice, Names, Text } from "./controls.tsx";
import {
  changeRoute,
  type Draft,
  type DraftFilter,
  listFilters,
  readParameter,
  removeFilter,
  setFilter,
  setParameter,
} from "./draft.ts";

type FormProps = {
  readonly app: App;
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
  /** Finds an entry of the type to begin with. */
  readonly onEntry: (slug: string) => void;
};

const ENDPOINTS: Record<Route["kind"], string> = {
  list: "List",
  search: "Search",
  entry: "One entry",
  schema: "Schema",
  catalog: "Catalog of types",
};

export function RequestForm({ app, draft, onChange, onEntry }: FormProps) {
  const { route } = draft;
  const slug = route.kind === "catalog" ? (app.types[0]?.slug ?? "") : route.slug;
  const type = findType(app, slug);
  const perPage = route.kind === "list" && type !== undefined ? defaultPerPage(type) : DEFAULT_PER_PAGE;
  const has = (name: string) => PARAMETERS_OF[route.kind].includes(name);
  const bind = (name: string) => ({
    value: readParameter(draft, name),
    onChange: (value: string) => onChange(setParameter(draft, name, value)),
  });

  function go(kind: Route["kind"], to: string): void {
    if (kind === "entry") onEntry(to);
    else onChange(changeRoute(draft, kind === "catalog" ? { kind } : { kind, slug: to }));
  }

  return (
    <section aria-label="Request" class="form">
      <div class="row">
        <Choice
          label="What"
          value={route.kind}
          options={ENDPOINTS}
          onChange={(kind) => go(kind as Route["kind"], slug)}
        />
        {route.kind !== "catalog" && (
          <Choice
            label="Type"
            value={slug}
            options={Object.fromEntries(app.types.map((one) => [one.slug, one.name || one.slug]))}
            onChange={(to) => go(route.kind, to)}
          />
        )}
      </div>
      {route.kind === "entry" && (
        <Text
          label="Id"
          value={route.id}
          hint="UUID"
          onChange={(id) => onChange({ ...draft, route: { ...route, id } })}
        />
      )}
      {has("q") && <Text label="Search for (q)" hint="2 to 200 characters" {...bind("q")} />}
      {has("filter") && <Filters type={type} draft={draft} onChange={onChange} />}
      {has("sort") && <Choice label="Sort" options={listSorts(type, route.kind)} {...bind("sort")} />}
      {has("page") && (
        <div class="row">
          <Text label="Page" hint="1" {...bind("page")} />
          <Text label="Per page" hint={String(perPage)} {...bind("per_page")} />
        </div>
      )}
      {has("fields") && <Names label="Fields" names={listFields(type)} {...bind("fields")} />}
      {has("populate") && <Names label="Populate" names={listRelations(type)} {...bind("populate")} />}
    </section>
  );
}

function listFields(type: ContentType | undefined): readonly string[] {
  return type === undefined ? [] : [...type.fields.map(({ name }) => name), ...TIMESTAMPS];
}

function listRelations(type: ContentType | undefined): readonly string[] {
  return type?.fields.filter((field) => field.type === "relation").map(({ name }) => name) ?? [];
}

function listSorts(type: ContentType | undefined, kind: Route["kind"]): Record<string, string> {
  const byDefault = kind === "search" ? "by relevance" : `by default: ${type?.default_sort ?? "newest first"}`;
  const sorts = type === undefined ? [] : listSortable(type);
  const directions = (name: string) => (isTimestamp(name) ? [name] : [name, `-${name}`]);
  return Object.fromEntries([["", byDefault], ...sorts.flatMap(directions).map((sort) => [sort, describeSort(sort)])]);
}

function describeSort(sort: string): string {
  if (isTimestamp(sort)) return `${sort}, newest first`;
  return sort.startsWith("-") ? `${sort.slice(1)}, descending` : `${sort}, ascending`;
}

// Filters: a field, an operator that it has, and a value.

type FiltersProps = Pick<FormProps, "draft" | "onChange"> & { readonly type: ContentType | undefined };

function Filters({ type, draft, onChange }: FiltersProps) {
  const box = useRef<HTMLFieldSetElement>(null);
  const filters = listFilters(draft);
  const names = type?.filterable_fields ?? [];

  function add(): void {
    const field = names.find((name) => filters.every((filter) => filter.field !== name)) ?? names[0] ?? "";
    onChange(setFilter(draft, { index: draft.pairs.length, field, operator: "eq", value: "" }));
    focusOn(".filter:last-of-type select");
  }

  function remove(filter: DraftFilter): void {
    onChange(removeFilter(draft, filter));
    focusOn(":scope > button");
  }

  /** Once the change is shown. */
  function focusOn(selector: string): void {
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(selector)?.focus());
  }

  return (
    <fieldset ref={box}>
      <legend>Filters</legend>
      {filters.map((filter) => (
        <FilterRow
          key={filter.index}
          filter={filter}
          names={names}
          column={type && findColumn(type, filter.field)}
          onChange={(changed) => onChange(setFilter(draft, changed))}
          onRemove={() => remove(filter)}
        />
      ))}
      <button type="button" onClick={add} disabled={names.length === 0}>
        Add a filter
      </button>
      {names.length === 0 && <span class="quiet"> This type has no filterable fields.</span>}
    </fieldset>
  );
}

type FilterRowProps = {
  readonly filter: DraftFilter;
  readonly names: readonly string[];
  readonly column: Column | undefined;
  readonly onChange: (filter: DraftFilter) => void;
  readonly onRemove: () => void;
};

const WORDS: Readonly<Record<string, string>> = {
  eq: "=",
  neq: "≠",
  gt: ">",
  gte: "≥",
  lt: "<",
  lte: "≤",
  contains: "contains",
  starts_with: "starts with",
  in: "is one of",
  nin: "is none of",
};

function FilterRow({ filter, names, column, onChange, onRemove }: FilterRowProps) {
  const operators = column === undefined ? [] : listOperators(column);
  const bind = (name: "field" | "operator" | "value") => ({
    value: filter[name],
    onChange: (value: string) => onChange({ ...filter, [name]: value }),
  });
  return (
    <div class="row filter">
      <Choice label="Field" options={Object.fromEntries(names.map((name) => [name, name]))} {...bind("field")} />
      <Choice
        label="Operator"
        options={Object.fromEntries(operators.map((one) => [one, WORDS[one] ?? one]))}
        {...bind("operator")}
      />
      <Text label="Value" hint={hintOf(column, filter.operator)} {...bind("value")} />
      <button type="button" aria-label={`Remove the filter on ${filter.field}`} onClick={onRemove}>
        ✕
      </button>
    </div>
  );
}

const HINTS: Partial<Record<Column["type"], string>> = {
  number: "2020",
  boolean: "true",
  date: "2026-01-20",
  datetime: "2026-01-20T15:30:00Z",
  timestamp: "2026-01-20T15:30:00Z",
  relation: "UUID",
  media: "file name",
};

function hintOf(column: Column | undefined, operator: string): string {
  const hint = HINTS[column?.type ?? "text"] ?? "text";
  return operator === "in" || operator === "nin" ? `${hint},…` : hint;
}
