/** Writes what an app asks for as the target of a request. */
import { type Route, writeQuery } from "../api/request.ts";
import { readUuid } from "../api/value.ts";
import type { AnyRequest, CallOptions } from "./types.ts";

/** Other parameters than those of the API are sent as they are. */
export type Asked = AnyRequest & CallOptions & { readonly [parameter: string]: unknown };

export type Target = { readonly route: Route; readonly path: string; readonly query: string };

export function writeTarget({ type, id, filter = {}, signal: _, counted: __, perPage, ...more }: Asked): Target {
  const filters = Object.entries(filter).flatMap(([field, condition]) =>
    typeof condition === "object"
      ? Object.entries(condition).map(([operator, value]) => ({
          parameter: `filter[${field}][${operator}]`,
          value: joinList(value),
        }))
      : { parameter: `filter[${field}]`, value: condition },
  );
  const query = writeQuery({ per_page: perPage, ...more, filters } as never);
  const write = (route: object, ...parts: string[]) => ({
    route: route as Route,
    path: ["/api/v1", ...parts.map(encodeURIComponent)].join("/"),
    query,
  });
  if (type === undefined)
    return id === undefined
      ? write({ kind: "catalog" }, "_schemas")
      : write({ kind: "schema", slug: id }, "_schemas", id);
  if (more.q !== undefined) return write({ kind: "search", slug: type }, type, "search");
  // What is no UUID could lead elsewhere. Of a dash, the API says what is wrong.
  return id === undefined
    ? write({ kind: "list", slug: type }, type)
    : write({ kind: "entry", slug: type, id }, type, readUuid(id) ?? "-");
}

/** A list of nothing is a comma: empty, it would count as not sent. */
function joinList(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  if (value.join("").includes(",")) throw TypeError("A list has a value with a comma.");
  return value.join() || ",";
}
