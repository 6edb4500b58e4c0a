/** A free request and its answer: what becomes a file of the tree. */
import type { Address } from "../../../shared/address.ts";

export type FreeAnswer = { readonly address: Address; readonly body: string };
