/** Writes a plan as a text key. Equal plans of an app have the same key, however their requests were spelled. */
import type { Condition } from "../../shared/condition.ts";
import { oncePerObject } from "../../shared/per-object.ts";
import type { ListPlan, Plan, SearchPlan } from "../../shared/plan.ts";
import type { Shown } from "../../shared/shown.ts";
import type { Sort } from "../../shared/sort.ts";

/** Remembered, because plans of repeated requests are reused. */
export const keyOf = oncePerObject((plan: Plan): string => JSON.stringify(partsOf(plan)));

/** Types and fields are written by name, which identifies them within an app. */
function partsOf(plan: Plan): readonly unknown[] {
  switch (plan.kind) {
    case "catalog":
      return [plan.kind];
    case "schema":
      return [plan.kind, plan.type.slug];
    case "entry": {
      const { kind, type, id, shown, populate, refusal } = plan;
      return [kind, type.slug, id, partsOfShown(shown), namesOf(populate), refusal];
    }
    case "list":
      return partsOfPage(plan);
    case "search":
      return [...partsOfPage(plan), plan.query, plan.words];
  }
}

function partsOfPage({
  kind,
  type,
  conditions,
  sort,
  page,
  perPage,
  shown,
}: ListPlan | SearchPlan): readonly unknown[] {
  const order = sort === null ? null : partsOfSort(sort);
  return [kind, type.slug, String(page), perPage, order, partsOfShown(shown), conditions.map(partsOfCondition)];
}

function partsOfSort({ column, descending }: Sort): readonly unknown[] {
  return [column.name, descending];
}

function partsOfShown({ fields, timestamps }: Shown): readonly unknown[] {
  return [namesOf(fields), timestamps];
}

function partsOfCondition(condition: Condition): object {
  return { ...condition, column: condition.column.name };
}

function namesOf(fields: readonly { readonly name: string }[]): string {
  return fields.map(({ name }) => name).join();
}
