/** Builds a merged page (merging.ts): it is among the first entries with each value. */
import type { ListPlan } from "../plan.ts";
import { testOf } from "./indexed.ts";
import { keptTotal } from "./kept-total.ts";
import { countSql, fromSql } from "./matching.ts";
import type { Merging } from "./merging.ts";
import { keyColumns, keysSql, storedKeys } from "./order.ts";
import { offsetSql, type Parts, placedSql, placesSql, type Statement } from "./page-query.ts";
import type { Slots } from "./slots.ts";
import { operandsSql, storedIn } from "./stored.ts";

export function mergedParts(statement: Statement, plan: ListPlan, slots: Slots, { condition }: Merging): Parts {
  const { perPage } = statement;
  const { bind } = statement.values;
  const kept = keptTotal(plan.conditions, slots, bind);
  const stored = storedIn(condition.column, slots);
  const values = operandsSql(condition, bind);
  const others = plan.conditions.filter((other) => other !== condition);
  const tests = others.map((other) => testOf(other, slots, bind).sql);
  const keys = storedKeys(plan.sort, storedIn(plan.sort.column, slots) as string);
  const { columns, order } = keyColumns(keys);
  const offset = offsetSql(statement);
  const ids = `SELECT candidate.id FROM unnest(${values}) AS wanted (value)
    CROSS JOIN LATERAL (SELECT e.id, ${columns} ${fromSql(statement, [`${stored} = wanted.value`, ...tests])}
      ORDER BY ${keysSql(keys)} LIMIT ${offset} + ${perPage}) AS candidate
    ORDER BY ${order} LIMIT ${perPage} OFFSET ${offset}`;
  const total = kept ?? countSql(statement, [`${stored} = ANY (${values})`, ...tests]);
  return { tables: [], ...placedSql(statement, placesSql(ids)), total };
}
