/** Determines what a request means to an app: everything that is known before its answer is. */
import { type App, type ContentType, findType } from "./catalog.ts";
import { type Metering, meter } from "./metering.ts";
import { type Plan, planRequest } from "./plan.ts";
import type { Refusal } from "./refusal.ts";
import type { ApiRequest } from "./request.ts";
import { type Saving, savingOf } from "./saving.ts";

export type Reading = {
  readonly app: App;
  readonly request: ApiRequest;
  /** Undefined for the catalog, and when the app has no such type. */
  readonly type: ContentType | undefined;
  readonly metering: Metering;
  readonly plan: Plan | Refusal;
  /** How a counted request could have been free; null when it could not, or is free. */
  readonly saving: Saving | null;
};

export function readFor(app: App, request: ApiRequest): Reading {
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  const metering = meter(request, type);
  return { app, request, type, metering, plan: planRequest(request, type), saving: savingOf(request, type) };
}
