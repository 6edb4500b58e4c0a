/** Runs the mapping core as an edge does: its source text alone, in a context without any host objects. */
import { createContext, runInContext } from "node:vm";
import { readPart } from "../../cli/edge/edge.ts";
import { findAddress, nameFile, nameFolder } from "../../shared/api/address.ts";
import { type App, findType } from "../../shared/api/catalog.ts";
import { isRefusal } from "../../shared/api/errors.ts";
import { planRequest } from "../../shared/api/plan.ts";
import { isCountedShape, priceRequest } from "../../shared/api/pricing.ts";
import { readRequest } from "../../shared/api/request.ts";

export type MapRequest = (method: string, target: string, keys: readonly string[]) => string;

const TEXT = readPart("core");

/** The core for these apps. It gets several X-App-Key headers joined by commas. */
export function openCore(apps: readonly App[]): MapRequest {
  const folders = JSON.stringify(Object.fromEntries(apps.map(({ key }) => [key, nameFolder(key).replace("/v1", "")])));
  const context = createContext({});
  const map = runInContext(`${TEXT}\n(m, t, k) => mapRequest(${folders}, m, t, k)`, context) as (
    method: string,
    target: string,
    appKey: string | undefined,
  ) => string;
  return (method, target, keys) => map(method, target, keys.length === 0 ? undefined : keys.join(", "));
}

/** The expected result, by the server's code: the file of a request; null if it is refused, counted or uses `like`. */
export function fileOfRequest(apps: readonly App[], target: string, keys: readonly string[]): string | null {
  const request = readRequest({ method: "GET", target, appKey: keys.length === 0 ? undefined : keys.join(", ") });
  if (request.kind !== "request" || request.likeFields.length > 0) return null;
  const app = apps.find(({ key }) => key === request.appKey);
  if (app === undefined) return null;
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  const { shape } = priceRequest(request, type);
  if (isCountedShape(shape) || isRefusal(planRequest(request, type))) return null;
  const address = findAddress(request, shape, type);
  return address === null ? null : `/${nameFolder(app.key)}/${nameFile(address)}`;
}
