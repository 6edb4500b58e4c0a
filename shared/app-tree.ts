/** Answers free requests from the files of an app's tree. */
import { type Address, addressOf } from "./address.ts";
import { type Body, bodyOf } from "./answer.ts";
import { isWholeBody, listBody } from "./body.ts";
import { type App, defaultPerPage } from "./catalog.ts";
import type { FreeShape } from "./metering.ts";
import type { Plan } from "./plan.ts";
import { entryNotFound, type Refusal } from "./refusal.ts";
import type { ApiRequest } from "./request.ts";

/** Whether what was read from the tree is still what the tree holds. */
export type CurrentCheck = () => boolean;

/** The body that a file of the tree holds. */
export type TreeBody = Body & { readonly bytes: Buffer; readonly isCurrent: CurrentCheck };

/** An app's part of the tree. It knows the app as it was when the tree was built. */
export type AppTree = {
  readonly app: App;
  readonly isCurrent: CurrentCheck;
  /** As `isCurrent`, but always checks the disk: `isCurrent` may lag behind a build for a moment. */
  readonly isCurrentOnDisk: CurrentCheck;
  /** Null when the tree has no such file. */
  readonly read: (address: Address) => Promise<TreeBody | null>;
};

/**
 * Null when the tree lacks a file that every complete tree has, or when a power failure has left a file empty or cut:
 * the database then answers.
 */
export async function answerFromTree(
  request: ApiRequest,
  tree: AppTree,
  plan: Plan,
  shape: FreeShape,
): Promise<Body | TreeBody | Refusal | null> {
  const type = "type" in plan ? plan.type : undefined;
  const address = addressOf(request, shape, type);
  const body = address === null ? null : await tree.read(address);
  if (body !== null) return isWholeBody(body.bytes) ? body : null;
  if (plan.kind === "entry") return entryNotFound();
  if (plan.kind !== "list" || shape === "sort") return null;
  if (shape === "filter") return emptyList(plan.page, defaultPerPage(plan.type), 0);
  const first = await tree.read({ kind: "page", slug: plan.type.slug, page: 1n });
  if (first === null || !isWholeBody(first.bytes)) return null;
  const { per_page, total } = metaOf(first);
  return emptyList(plan.page, per_page, total);
}

/** The answer to a page behind the last, or to a filter that nothing matches. The tree needs no file for it. */
function emptyList(page: bigint, perPage: number, total: number): Body {
  return bodyOf(listBody([], { page, perPage, total }));
}

/**
 * Reads both from one file, and not `per_page` from the app: a build replaces the file before the app's state. Parses
 * only what is behind the entries: all of a long page would hold up other requests for milliseconds.
 */
function metaOf({ bytes }: TreeBody): { readonly per_page: number; readonly total: number } {
  const meta = bytes.toString("utf8", bytes.lastIndexOf('"meta":'));
  return (JSON.parse(`{${meta}`) as { meta: { per_page: number; total: number } }).meta;
}

/** Only an answer that is the body of one file can be checked for changes. Null for all others. */
export function currentOf(tree: AppTree, outcome: Body | TreeBody | Refusal): CurrentCheck | null {
  return isFile(outcome) ? () => tree.isCurrent() && outcome.isCurrent() : null;
}

export function isFile(outcome: Body | TreeBody | Refusal | null): outcome is TreeBody {
  return outcome !== null && "isCurrent" in outcome;
}
